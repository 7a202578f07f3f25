"""Measures run folders and removes them. A removal may be killed at any point: repeating goes on from there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from yurt.backends import scripts
from yurt.backends.job import script
from yurt.errors import UnreachableError, YurtError
from yurt.hosts import Host
from yurt.hosts.base import Answer, refusal
from yurt.model import ids
from yurt.model.files import NOTHING, Held, Holdings, Removed, Survey

LONG = 3600.0
"""Seconds that a removal may take; cut off, it goes on there."""


@cache
def tools() -> str:
    """The sh functions that look at run folders and remove them."""
    parts = (script.gate(), scripts.text("measure.sh"), scripts.text("receive.sh"), "\n", scripts.text("remove.sh"))
    return "".join(parts)


def survey(host: Host, folders: Sequence[str]) -> list[Survey]:
    answer = host.run(tools() + 'survey "$@"', *folders, timeout=600)
    if answer.code:
        raise refusal(host.name, "the run folders could not be measured", answer.errors)
    return read_survey(answer.text, folders)


def read_survey(text: str, folders: Sequence[str]) -> list[Survey]:
    """What `survey` said of each folder."""
    sizes, blocks = read_sizes(text)
    found = []
    for folder, (line, *tasks) in zip(folders, blocks, strict=True):
        what, outputs, checkpoints = (*line.split(), NOTHING, NOTHING)[:3]
        found.append(Survey(what, sizes.get(folder, 0), outputs, checkpoints, read_tasks(tasks)))
    return found


def read_sizes(text: str) -> tuple[dict[str, int], list[list[str]]]:
    """Bytes by folder; then the lines said of each run, those of tasks with that of their sweep."""
    head, _, tail = text.partition("= runs\n")
    sizes = {path: int(size) * 1024 for size, _, path in (line.partition("\t") for line in head.splitlines()[1:])}
    blocks: list[list[str]] = []
    for line in tail.splitlines():
        if line.startswith("+"):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return sizes, blocks


def read_tasks(lines: Sequence[str]) -> dict[int, tuple[str, str]]:
    """What `measure_tasks` said."""
    words = (line[1:].split() for line in lines)
    return {int(number): (outputs, checkpoints) for number, outputs, checkpoints in words if number.isdigit()}


def holdings(host: Host, base: str) -> Holdings:
    answer = host.run(tools() + 'holdings "$1"', base, timeout=600)
    if answer.code:
        raise refusal(host.name, "what yurt has there could not be listed", answer.errors)
    sizes, blocks = read_sizes(answer.text)
    runs = []
    for (line,), (measures, *tasks) in zip(blocks[::2], blocks[1::2], strict=True):
        ended, _, folder = line.partition(" ")
        if ids.names_folder(folder.rpartition("/")[2]):
            outputs, checkpoints = measures.split()
            has = Survey("there", sizes.get(folder, 0), outputs, checkpoints, read_tasks(tasks))
            runs.append(Held(folder, ended == "ended", has))
    return Holdings(runs, sizes)


def remove(host: Host, folders: Sequence[str]) -> Removed:
    answer = host.run(tools() + 'remove "$@"', *folders, timeout=LONG)
    words = [line.split() for line in answer.text.splitlines()]
    gone = [word[1] for word in words if len(word) == 2 and word[0] == "gone" and ids.names_folder(word[1])]
    failed = None if not answer.code else _failure(host.name, "not all runs could be removed", answer)
    return Removed(gone, failed=failed)


def clear(host: Host, base: str, folders: Sequence[str]) -> Removed:
    answer = host.run(tools() + 'clear_out "$@"', base, *folders, timeout=LONG)
    gone: list[str] = []
    left: list[str] = []
    for line in answer.text.splitlines():
        word, _, rest = line.partition(" ")
        (gone if word == "gone" else left).append(rest)
    failed = None if not answer.code else _failure(host.name, "not everything could be removed", answer)
    return Removed(gone, left, failed)


def _failure(name: str, what: str, answer: Answer) -> YurtError:
    """What it means that a removal did not come to its end."""
    if answer.code > 128:  # as login nodes do with who takes too much of them
        return UnreachableError(
            f"{name}: the removal was killed there before it had ended",
            code="connection-lost",
            hint="repeat the command: it goes on from there",
        )
    return refusal(name, what, answer.errors)
