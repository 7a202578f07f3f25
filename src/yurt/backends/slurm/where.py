"""When jobs would start: the input of where.sh, and the parser of its output. Pure; unknown words stay unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from yurt.backends import scripts
from yurt.backends.slurm import live, options, wordings
from yurt.model.where import Answer, Ask, Question

WITHOUT = (*options.OWN, *options.FOREIGN, "array", "hold", "dependency", "comment", "mail-type", "mail-user")
"""Options that do not belong to a test submission: when the job starts does not depend on them, or yurt sets them."""

VARIED = ("partition", "time", "gres", "nodes")
"""Options that differ between the requests of one query."""

_WORD = re.compile(r"--[a-z-]+=[\w.:,+@\[\]-]+", re.ASCII)
_START = [re.compile(pattern) for pattern in wordings.TEST_SUBMISSION]
_FAILURE = re.compile(r"(?:allocation failure|sbatch: error): ([^|]+)")


def script() -> str:
    return live.script() + scripts.text("where.sh", "slurm")


def common(question: Question) -> list[str]:
    """Return the sbatch options that all requests of a query share."""
    wanted: dict[str, str | None] = {"chdir": question.folder, "job-name": "yurt-test"}
    wanted |= {name: value for name, value in options.of_resources(question.resources).items() if name not in VARIED}
    wanted |= {name: value for name, value in _own(question.options).items() if name not in WITHOUT}
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in wanted.items()]


def _own(more: Mapping[str, str | None]) -> dict[str, str | None]:
    return {options.long_name(name): value for name, value in more.items()}


def lines(question: Question) -> str:
    """Return the input of where.sh. Requests with an option that a shell would change are left out."""
    found = [f"path {number} {path}" for number, path in enumerate(question.paths) if "\n" not in path]
    fixed, resources = _own(question.options), question.resources
    for number, ask in enumerate(question.asks):
        shape = msgspec.structs.replace(
            resources,
            partition=ask.partition or resources.partition,
            minutes=ask.minutes or resources.minutes,
            gpus=ask.gpus or resources.gpus,
            nodes=str(ask.nodes) if ask.nodes else resources.nodes,
        )
        given = options.of_resources(shape)
        words = [f"--{name}={given[name]}" for name in VARIED if name in given and name not in fixed]
        if all(_WORD.fullmatch(word) for word in words):
            found.append(" ".join(["less" if ask.shaped else "ask", str(number), *words]))
    return "".join(f"{line}\n" for line in found)


class Reply(msgspec.Struct, frozen=True):
    """What where.sh reports."""

    now: float | None
    """The clock of the site; None if it did not report any."""
    answers: list[Answer]
    there: set[int]
    """The numbers of the paths that exist."""


def read(output: Sequence[str], asks: Sequence[Ask]) -> Reply:
    """Return the answers in the section `where`. Requests without an answer are left out."""
    now, wall = None, ""
    answers: list[Answer] = []
    there: set[int] = set()
    for line in output:
        word, _, rest = line.partition(" ")
        number, _, text = rest.partition(" ")
        if not number.isascii() or not number.isdigit():
            continue
        if word == "now":
            now, wall = float(number), text.strip()
        elif word == "there":
            there.add(int(number))
        elif word == "reply" and int(number) < len(asks):
            answers.append(_answer(asks[int(number)], text, now, wall))
    return Reply(now, answers, there)


def _answer(ask: Ask, text: str, now: float | None, wall: str) -> Answer:
    found = next((match for pattern in _START if (match := pattern.search(text))), None)
    if found is not None:
        return Answer(ask=ask, seconds=_wait(found[2], now, wall), nodes=found[4] or "")
    code = text.partition(" ")[0]
    if code == "0":
        return Answer(ask=ask)
    reasons = [each.strip() for each in _FAILURE.findall(text)]
    telling = [each for each in reasons if each != "Unspecified error"]
    return Answer(ask=ask, refusal=(telling or reasons or ["sbatch failed without a reason"])[-1])


def _wait(text: str, now: float | None, wall: str) -> float | None:
    """Return the seconds from the site's now until a time: seconds since 1970, or local time of the site."""
    if text.isascii() and text.isdigit():
        return max(0.0, float(text) - now) if now is not None else None
    try:
        return max(0.0, (datetime.fromisoformat(text) - datetime.fromisoformat(wall)).total_seconds())
    except (ValueError, TypeError):
        return None
