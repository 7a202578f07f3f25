"""Measures and removes run folders. A removal can be killed at any point; a retry continues it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.backends.shell import ownership
from yurt.errors import UnreachableError, YurtError
from yurt.model import ids, layout
from yurt.model.files import NOTHING, Held, Holdings, Measures, Removed, Survey, checked
from yurt.model.site_words import whole
from yurt.transport.base import Answer, Host, refusal

LONG = 3600.0
"""Timeout of a removal in seconds; after a lost connection it continues on the host."""

END = "= end\n"
"""The last line of complete measures."""


@cache
def tools() -> str:
    """Return the sh functions that measure and remove run folders."""
    return script.gate() + scripts.text("measure.sh") + scripts.receiver() + scripts.text("remove.sh")


def _above(folders: Sequence[str]) -> list[str]:
    """Return the folders that contain these run folders. The scripts themselves reject run folders that are links."""
    return list(dict.fromkeys(folder.rpartition("/")[0] for folder in folders))


def survey(host: Host, folders: Sequence[str]) -> list[Survey]:
    answer = ownership.run(host, _above(folders), tools() + 'survey "$@"', *folders, timeout=600)
    if answer.code or not answer.text.endswith(END):
        raise refusal(host.name, "cannot measure the run folders", answer.errors)
    with host.reading():
        return read_survey(answer.text, folders)


def read_survey(text: str, folders: Sequence[str]) -> list[Survey]:
    """Parse the output of `survey` for each folder."""
    sizes, blocks, measures = read_blocks(text)
    return [
        Survey(what, _size(sizes, what, folder), _measures(measures, folder), read_tasks(tasks))
        for folder, (what, *tasks) in zip(folders, blocks, strict=True)
    ]


def read_blocks(text: str) -> tuple[dict[str, int], list[list[str]], dict[str, str]]:
    """Return bytes by folder; the lines of each run, with those of its tasks; and the measures of folders."""
    head, _, tail = text.partition("= runs\n")
    body, _, tail = tail.partition("= measures\n")
    sizes = {path: whole(size) * 1024 for size, _, path in (line.partition("\t") for line in head.splitlines()[1:])}
    blocks: list[list[str]] = []
    for line in body.splitlines():
        if line.startswith("+"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    measures = {
        path: checked(measure)
        for measure, _, path in (line.partition(" ") for line in tail.removesuffix(END).splitlines())
    }
    return sizes, blocks, measures


def _size(sizes: Mapping[str, int], what: str, folder: str) -> int:
    if what == "there" and folder not in sizes:
        raise ValueError(f"du printed no size of {folder}")
    return sizes.get(folder, 0)


def _measures(found: Mapping[str, str], folder: str) -> Measures:
    """Return the measures of a run; folders that are empty or do not exist have no line."""
    return Measures(
        outputs=found.get(f"{folder}/{layout.OUTPUTS}", NOTHING),
        checkpoints=found.get(f"{folder}/{layout.CHECKPOINTS}", NOTHING),
        work=found.get(f"{folder}/{layout.WORK}", NOTHING),
    )


def read_tasks(lines: Sequence[str]) -> dict[int, Measures]:
    """Parse the output of `measure_tasks`."""
    words = (line[1:].split() for line in lines)
    return {whole(number): Measures(*map(checked, measures)) for number, *measures in words if number.isdigit()}


def holdings(host: Host, base: str) -> Holdings:
    answer = ownership.run(host, [base], tools() + 'holdings "$1"', base, timeout=600)
    if answer.code or not (answer.text.endswith(END) or not answer.text):
        raise refusal(host.name, "cannot list the files of yurt", answer.errors)
    runs = []
    with host.reading():
        sizes, blocks, measures = read_blocks(answer.text)
        for line, *tasks in blocks:
            ended, _, folder = line.partition(" ")
            if ids.names_folder(folder.rpartition("/")[2]):
                has = Survey("there", sizes.get(folder, 0), _measures(measures, folder), read_tasks(tasks))
                runs.append(Held(folder, ended == "ended", has))
    return Holdings(runs, sizes)


def remove(host: Host, folders: Sequence[str]) -> Removed:
    answer = ownership.run(host, _above(folders), tools() + 'remove "$@"', *folders, timeout=LONG)
    words = [line.split() for line in answer.text.splitlines()]
    gone = [word[1] for word in words if len(word) == 2 and word[0] == "gone" and ids.names_folder(word[1])]
    failed = None if not answer.code else _failure(host.name, "cannot remove all runs", answer)
    return Removed(gone, failed=failed)


def clear(host: Host, base: str, folders: Sequence[str], home: str) -> Removed:
    own = [base, home] if home else [base]
    answer = ownership.run(host, own, tools() + 'clear_out "$@"', base, home, *folders, timeout=LONG)
    gone: list[str] = []
    left: list[str] = []
    for line in answer.text.splitlines():
        word, _, rest = line.partition(" ")
        (gone if word == "gone" else left).append(rest)
    failed = None if not answer.code else _failure(host.name, "cannot remove everything", answer)
    return Removed(gone, left, failed)


def _failure(name: str, what: str, answer: Answer) -> YurtError:
    """Return the error for a removal that did not finish."""
    if answer.code > 128:  # login nodes kill processes that use too many resources
        return UnreachableError(
            f"{name}: the removal was interrupted",
            code="connection-lost",
            hint="run the command again to remove the rest",
        )
    return refusal(name, what, answer.errors)
