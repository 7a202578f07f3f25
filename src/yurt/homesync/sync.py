"""One sync of one pair: runs Unison, repeats it where that is safe and helps, and says why it failed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import msgspec

from yurt.errors import YurtError
from yurt.homesync import client, programs
from yurt.homesync.client import Finished, Start
from yurt.homesync.outcomes import Outcome
from yurt.homesync.places import Pair, Place
from yurt.homesync.problems import problem
from yurt.model.progress import Watch

ATTEMPTS = 6

INCONSISTENT = "inconsistent|archives are not identical"
"""What Unison says if the archives of the two sides do not fit together: one of them is missing, or older."""

SAME = 2
"""Seconds: times that are closer together may be equal for Unison."""

MOST_PATHS = 100
"""Paths that one sync is limited to at most; for more files, it is limited to their folders."""

ARCHIVES = (
    "the archives of the last sync were incomplete, so this one compared everything again: files that differ are "
    "conflicts, and deleted files may be back"
)


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One sync of one pair."""

    outcome: Outcome
    start: Start
    folders: list[str]
    """Its folders in the backups."""
    idle: bool = False
    """Whether it changed nothing and no job waits for it, so that there is nothing to do after it."""


def once(pair: Pair, start: Start, arguments: Sequence[str], watch: Watch, unsure: Sequence[str] = ()) -> Pass:
    """Sync a pair in batch mode. Every failure is an Outcome with code 3 and its problem.

    `unsure`: the files of which the last sync was unsure. Their contents are compared first.
    """
    began = time.time()
    start = start.another()
    folders = [start.folder]
    warnings: list[str] = []
    notes: list[str] = []
    idle = False
    outcome = Outcome(hub=pair.hub.name, spoke=pair.spoke.name, began=began, ended=began, code=3)
    try:
        early = None
        if unsure and not paths_in(arguments):
            before = start.another()
            folders.append(before.folder)
            early, notes = _compare_contents(pair, before, unsure, watch)
        done, warnings = _repeated(pair, start, arguments, watch)
        warnings = [*notes, *warnings]
        outcome = _outcome(pair, outcome, done)
        outcome = outcome if early is None else _joined(_outcome(pair, outcome, early), outcome)
        outcome = msgspec.structs.replace(outcome, unsure=_unsure(pair, [*unsure, *done.printed.copied], began))
        idle = not (outcome.transferred or outcome.failed or done.printed.jobs_wait)
    except YurtError as error:
        outcome = failed(outcome, error)
    outcome = msgspec.structs.replace(outcome, ended=time.time(), paths=paths_in(arguments), warnings=warnings)
    return Pass(outcome=outcome, start=start, folders=folders, idle=idle)


def failed(outcome: Outcome, error: YurtError) -> Outcome:
    """Return an outcome of code 3 for an error."""
    return msgspec.structs.replace(
        outcome,
        code=3,
        problem=error.message,
        problem_code=error.code,
        problem_exit=error.exit_code if error.exit_code in (4, 5) else 5,
        hint=error.hint,
    )


def code_of(done: Finished) -> int:
    """Return the exit code of Unison; that of a good sync if only the permissions of the two roots differ."""
    if done.code == 1 and done.printed.only_root:
        return 0
    return done.code if done.code in (0, 1, 2) else 3


def paths_in(arguments: Sequence[str]) -> list[str]:
    """Return the values of `-path`."""
    return [value for word, value in pairwise(arguments) if word == "-path"]


def _repeated(pair: Pair, start: Start, arguments: Sequence[str], watch: Watch) -> tuple[Finished, list[str]]:
    """Run Unison until it reaches its end; return what it printed, and warnings. Otherwise raise the error."""
    warnings: list[str] = []
    more: list[str] = []
    installed: set[str] = set()
    for attempt in range(1, ATTEMPTS + 1):
        done = client.run(pair, start, [*arguments, *more], watch)
        printed = done.printed
        missing = printed.said("no-unison") or printed.said("old-unison")
        if printed.complete:
            return done, warnings
        if missing is not None:
            place = next((each for each in pair.places if each.name == missing.place), pair.client)
            if place.here or place.name in installed:
                raise problem(pair, done)
            programs.install(place, missing.text)
            installed.add(place.name)
        elif "archives are locked" in printed.fatal and "-ignorelocks" not in more:
            # Left by a Unison that was killed while it saved its archives: we hold the locks of both sides.
            more.append("-ignorelocks")
        elif re.search(INCONSISTENT, printed.fatal) and "-ignorearchives" not in more:
            more.append("-ignorearchives")
            warnings.append(ARCHIVES)
        elif not _may_retry(pair, done, attempt):
            raise problem(pair, done)
    raise problem(pair, done)


def _may_retry(pair: Pair, done: Finished, attempt: int) -> bool:
    """Whether the connection to the server was closed before the server's script started."""
    reached = any(each.place == pair.server.name for each in done.printed.sides)
    return pair.client.here and not reached and pair.server.host.retry(done.err, attempt)


def _compare_contents(pair: Pair, start: Start, paths: Sequence[str], watch: Watch) -> tuple[Finished, list[str]]:
    words = [word for path in paths for word in ("-path", path)]
    # The whole of a path may be deleted: that is no sign of a home that is gone.
    return _repeated(pair, start, [*words, "-fastcheck", "false", "-confirmbigdel=false"], watch)


def _unsure(pair: Pair, paths: Sequence[str], began: float) -> list[str]:
    """Return the files whose next edit may not show, as Unison takes times that differ by a second for equal.

    These were edited just before the sync, or during it. Only this machine's files are looked at.
    """
    return edited_since(Path(pair.client.folder), paths, int(began) - SAME) if pair.client.here else []


def _joined(first: Outcome, second: Outcome) -> Outcome:
    """Return the outcome of two syncs, of which the second one was of everything."""
    return msgspec.structs.replace(
        second,
        transferred=first.transferred + second.transferred,
        to_hub=first.to_hub + second.to_hub,
        to_spoke=first.to_spoke + second.to_spoke,
        size=(first.size or 0) + (second.size or 0),
    )


def edited_since(root: Path, copied: Sequence[str], second: int) -> list[str]:
    """Return the copied files below a root that were edited in that second or later; their folders if they are many."""
    found = []
    for path in dict.fromkeys(copied):
        for each in _files(root / path):
            try:
                if int(each.lstat().st_mtime) >= second:
                    found.append(str(each.relative_to(root)))
            except OSError:  # it changed in the meantime
                continue
    return found if len(found) <= MOST_PATHS else sorted({each.partition("/")[0] for each in found})


def _files(top: Path) -> Iterator[Path]:
    if not top.is_dir() or top.is_symlink():
        yield top
        return
    for folder, _folders, files in os.walk(top):
        yield from (Path(folder, each) for each in files)


def _outcome(pair: Pair, outcome: Outcome, done: Finished) -> Outcome:
    printed = done.printed
    to_hub, to_spoke = printed.to_client, printed.to_server
    if pair.client is pair.spoke:
        to_hub, to_spoke = to_spoke, to_hub
    return msgspec.structs.replace(
        outcome,
        code=code_of(done),
        transferred=printed.transferred,
        to_hub=to_hub,
        to_spoke=to_spoke,
        size=_size(pair.client, printed.copied) if pair.client.here else None,
        skipped=printed.skipped,
        failed=printed.failed,
    )


def _size(place: Place, copied: Sequence[str]) -> int:
    """Return the size of files and folders below this machine's root."""
    size = 0
    for path in copied:
        for each in _files(Path(place.folder) / path):
            with suppress(OSError):  # it changed in the meantime
                size += each.lstat().st_size
    return size
