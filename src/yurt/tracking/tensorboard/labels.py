"""Names of runs in TensorBoard: yurt's names and parameters, not paths. Pure.

A label is a path: TensorBoard shows one run for each folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from yurt.model import layout, params
from yurt.model.run import Run

LONGEST, LONGEST_VALUE = 150, 40
"""Maximum number of characters of one part of a label, and of the value of a parameter in it."""

PLACES = (layout.WORK, layout.OUTPUTS, layout.CHECKPOINTS, "place")
"""First folders of the paths of event files: where in the run they are."""

_SILENT = re.compile(
    r"runs?|logs?|lightning_logs|tb|tb_logs|tensorboard|tensorboard_logs|events|multirun"
    r"|[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}_.*"  # PyTorch: Nov17_12-00-00_host
    r"|\d{4}-\d{2}-\d{2}|\d{2}-\d{2}-\d{2}|\d{4}-\d{2}-\d{2}[_T ]\d{2}[-:]\d{2}[-:]\d{2}"  # Hydra
)
"""Names of folders that say nothing about what is in them."""

_VERSION = re.compile(r"version_\d+")


def of_runs(runs: Sequence[Run]) -> dict[str, str]:
    """Return the label of each run and sweep, by id. Runs with equal names get their ids added."""
    plain = {run.id: part(run.name or _script(run)) for run in runs}
    alike = Counter(plain.values())
    return {
        run.id: plain[run.id] if run.name and alike[plain[run.id]] == 1 else f"{plain[run.id]} {_short(run.id)}"
        for run in runs
    }


def of_tasks(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the label of each task of a sweep: the parameters that vary, else its number."""
    keys = dict.fromkeys(key for each in sets for key in each)
    written = [{key: _value(each.get(key)) for key in keys} for each in sets]
    vary = [key for key in keys if len({each[key] for each in written}) > 1]
    texts = [",".join(f"{key}={each[key]}" for key in vary) for each in written]
    cut = [part(text) for text in texts]
    counts = Counter(cut)
    return [
        str(number) if not text else text if counts[text] == 1 else f"{text} #{number}"
        for number, text in enumerate(cut)
    ]


def below(path: str) -> str:
    """Return the path of a folder as the script sees it: without the part of the run folder that it is in."""
    first, _slash, rest = path.partition("/")
    return rest if first in PLACES else path


def of_folder(folder: str, others: Collection[str]) -> str:
    """Return the label of a folder of event files within its run; empty if nothing in its path says anything.

    `others` are the folders of event files of the same run.
    """
    parts = [each for each in below(folder).split("/") if each]
    kept = []
    for at, each in enumerate(parts):
        if _SILENT.fullmatch(each) or (_VERSION.fullmatch(each) and not _versions(folder, at, others)):
            continue
        kept.append(part(each))
    return "/".join(kept)


def matches(folder: str, glob: str) -> bool:
    """Whether a folder of event files, or one that contains it, matches a pattern such as `runs/*/train`."""
    parts = below(folder).split("/")
    wanted = glob.strip("/").removeprefix("./") or "."
    paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return any(fnmatchcase(path or ".", wanted) for path in paths)


def part(text: str) -> str:
    """Return a text as the name of a folder."""
    safe = "".join("_" if char in "/\\" or not char.isprintable() else char for char in text).strip()
    if safe.startswith("."):
        safe = f"_{safe}"
    return safe if len(safe.encode()) <= LONGEST else safe.encode()[:LONGEST].decode(errors="ignore") + "…"


def _versions(folder: str, at: int, others: Collection[str]) -> bool:
    """Whether another version stands beside a folder version_N of Lightning."""
    parts = below(folder).split("/")
    for other in others:
        theirs = below(other).split("/")
        if (
            theirs[:at] == parts[:at]
            and len(theirs) > at
            and theirs[at] != parts[at]
            and _VERSION.fullmatch(theirs[at])
        ):
            return True
    return False


def _script(run: Run) -> str:
    """Return the name of the script of a run, else of its program."""
    names = [word.rpartition("/")[2] for word in run.command]
    return next((name for name in names if re.fullmatch(r"[^-].*\.(py|sh|jl|R|r|ipynb)", name)), (names or [run.id])[0])


def _short(run: str) -> str:
    """Return the part of an id that is short to type."""
    parent = run.partition(".")[0]
    return parent.partition("-")[2] or parent


def _value(value: Any) -> str:
    text = params.summary(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def is_task(path: str) -> tuple[int, str] | None:
    """Return the number of the task whose file this is, and the path within it; None if it is of no task."""
    found = re.fullmatch(rf"{layout.TASKS}/([0-9]+)/(.*)", path, re.DOTALL)
    return (int(found[1]), found[2]) if found else None
