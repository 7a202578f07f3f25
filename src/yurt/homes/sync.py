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
from yurt.homes import client, deletions, output, programs, unreadable
from yurt.homes.client import Finished, Start
from yurt.homes.deletions import Guard
from yurt.homes.doubts import Doubts
from yurt.homes.outcomes import NOT_CONFIRMED, Outcome, Skipped
from yurt.homes.places import Pair, Place
from yurt.homes.problems import EMPTIED, problem
from yurt.model.progress import Watch

ATTEMPTS = 6

MOST_PATHS, MOST_BYTES = 500, 50_000
"""Limits of one command line of Unison."""

NO_DOUBTS = Doubts()

INCONSISTENT = "inconsistent|archives are not identical"
"""What Unison says if the archives of the two sides do not fit together: one of them is missing, or older."""

ARCHIVES = (
    "the archives of the last sync were incomplete, so this one compared everything again: files that differ are "
    "conflicts, and deleted files may be back"
)


REFILLED = "had no files any more, so this sync copied them from the other place"


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One sync of one pair."""

    outcome: Outcome
    start: Start
    folders: list[str]
    """Its folders in the backups."""
    copied: list[str] = []
    """The paths that it copied, and those of which the last sync was unsure."""
    idle: bool = False
    """Whether it changed nothing and no job waits for it, so that there is nothing to do after it."""


def once(
    pair: Pair,
    start: Start,
    arguments: Sequence[str],
    watch: Watch,
    doubts: Doubts = NO_DOUBTS,
    *,
    guard: Guard | None = None,
) -> Pass:
    """Sync a pair in batch mode. Every failure is an Outcome with code 3 and its problem.

    With a guard, Unison copies everything but deletions first; then those that are not large, or that the user has
    confirmed. If a file may have changed of which the last sync was unsure, the contents of these files are compared
    first.
    """
    began = time.time()
    partly = bool(paths_in(arguments))
    keep = guard is not None
    start = start.another(check="required" if doubts.paths else "no-check", again=start.again, partly=partly, keep=keep)
    folders, token = [start.folder], start.token
    copied = [*doubts.paths]
    idle = False
    outcome = Outcome(hub=pair.hub.name, spoke=pair.spoke.name, began=began, ended=began, code=3)
    try:
        early, warnings = None, list[str]()
        if doubts.noted:
            done, warnings = _repeated(pair, start, arguments, watch)
        if not doubts.noted or done.printed.said("edited"):
            before, start = start.another(keep=keep), start.another(again=True, keep=keep)
            folders, token = [before.folder, start.folder], before.token
            early, notes = compare_contents(pair, before, doubts.paths, watch)
            copied += early.printed.copied
            done, more = _repeated(pair, start, arguments, watch)
            warnings += [*notes, *more]
        copied += done.printed.copied
        outcome = _outcome(pair, outcome, done)
        outcome = outcome if early is None else _joined(_outcome(pair, outcome, early), outcome)
        outcome = msgspec.structs.replace(outcome, warnings=warnings)
        if guard is not None and done.printed.kept:
            decided = deletions.decide(pair, done.printed.kept, guard)
            outcome, backups = _delete(pair, start, outcome, decided, watch)
            folders += backups
        if guard is not None and outcome.failed:
            outcome = unreadable.named(pair, outcome, guard.profile)
        idle = not (outcome.transferred or outcome.failed or done.printed.jobs_wait)
    except YurtError as error:
        outcome = failed(outcome, error)
    outcome = msgspec.structs.replace(
        outcome,
        ended=time.time(),
        paths=paths_in(arguments),
        token="" if partly or (start.again and token == start.token) else token,
    )
    return Pass(outcome=outcome, start=start, folders=folders, copied=copied, idle=idle)


def _delete(
    pair: Pair, start: Start, outcome: Outcome, decided: deletions.Decision, watch: Watch
) -> tuple[Outcome, list[str]]:
    """Copy deletions; return the outcome with them, and with those that wait for the user, and folders in the backups.

    Only their paths are synced, so that what is deleted in the meantime is not part of it.
    """
    folders = []
    for some in parts([*decided.copy]):
        again = start.another(again=True, partly=True)
        folders.append(again.folder)
        words = [word for path in some for word in ("-path", path)]
        done, warnings = _repeated(pair, again, [*words, "-confirmbigdel=false"], watch)
        # What is kept again, a line of the user's own in the profile protects.
        protected = [Skipped(each.path, output.NOT_DELETED) for each in done.printed.kept]
        more = _outcome(pair, outcome, done)
        left = {each.path for each in (*more.skipped, *more.failed, *protected)}
        deleted = sum(decided.copy[path] for path in some if path not in left)
        outcome = _added(outcome, msgspec.structs.replace(more, deleted=deleted), protected, warnings)
    waiting = [Skipped(path, NOT_CONFIRMED) for path in decided.keep]
    return msgspec.structs.replace(
        outcome,
        code=max(outcome.code, 1 if waiting else 0),
        skipped=[*outcome.skipped, *waiting],
        deletions=decided.deletions,
        hint=deletions.hint(decided.deletions),
    ), folders


def _added(first: Outcome, second: Outcome, skipped: Sequence[Skipped], warnings: Sequence[str]) -> Outcome:
    """Return the outcome of a sync of everything and then of some paths."""
    return msgspec.structs.replace(
        _joined(first, second),
        code=max(first.code, second.code, 1 if skipped else 0),
        skipped=[*first.skipped, *second.skipped, *skipped],
        failed=[*first.failed, *second.failed],
        warnings=[*first.warnings, *warnings],
    )


def parts(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield paths in parts that fit into a command line of Unison."""
    part: list[str] = []
    for path in paths:
        if part and (len(part) == MOST_PATHS or sum(map(len, part)) + len(path) > MOST_BYTES):
            yield part
            part = []
        part.append(path)
    if part:
        yield part


def compare_contents(pair: Pair, start: Start, paths: Sequence[str], watch: Watch) -> tuple[Finished, list[str]]:
    """Sync some paths, of which Unison compares the contents instead of the times."""
    words = [word for path in paths for word in ("-path", path)]
    # The whole of a path may be deleted: that is no sign of a home that is gone.
    return _repeated(pair, start, [*words, "-fastcheck", "false", "-confirmbigdel=false"], watch)


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
    """Return the exit code of Unison; that of a good sync if nothing that was skipped is a conflict."""
    if done.code == 1 and done.printed.harmless:
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
        if printed.complete or printed.said("edited"):
            return done, warnings
        if missing is not None:
            place = next((each for each in pair.places if each.name == missing.place), pair.client)
            if place.here or place.name in installed:
                raise problem(pair, done)
            programs.install(place, missing.text)
            installed.add(place.name)
        elif not start.refilling and _has_lost_everything(start.refill, done):
            start = msgspec.structs.replace(start, refilling=True)
            warnings.append(f"{start.refill} {REFILLED}")
        elif "archives are locked" in printed.fatal and "-ignorelocks" not in more:
            # Left by a Unison that was killed while it saved its archives: we hold the locks of both sides.
            more.append("-ignorelocks")
        elif re.search(INCONSISTENT, printed.fatal) and "-ignorearchives" not in more:
            more.append("-ignorearchives")
            warnings.append(ARCHIVES)
        elif not _may_retry(pair, done, attempt):
            raise problem(pair, done)
    raise problem(pair, done)


def _has_lost_everything(place: str, done: Finished) -> bool:
    """Whether a sync was refused because a place has no files any more, or because one of the places has none."""
    gone = done.printed.said("emptied") or done.printed.said("vanished")
    return bool(place) and (gone.place == place if gone else EMPTIED.search(done.err) is not None)


def _may_retry(pair: Pair, done: Finished, attempt: int) -> bool:
    """Whether the connection to the server was closed before the server's script started."""
    reached = any(each.place == pair.server.name for each in done.printed.sides)
    return pair.client.here and not reached and pair.server.host.retry(done.err, attempt)


def _joined(first: Outcome, second: Outcome) -> Outcome:
    """Return the second outcome, with the number of changes of both."""
    return msgspec.structs.replace(
        second,
        transferred=first.transferred + second.transferred,
        to_hub=first.to_hub + second.to_hub,
        to_spoke=first.to_spoke + second.to_spoke,
        deleted=first.deleted + second.deleted,
        size=None if first.size is None or second.size is None else first.size + second.size,
    )


def _files(top: Path) -> Iterator[Path]:
    if not top.is_dir() or top.is_symlink():
        yield top
        return
    for folder, _folders, files in os.walk(top):
        yield from (Path(folder, each) for each in files)


def _outcome(pair: Pair, outcome: Outcome, done: Finished) -> Outcome:
    printed = done.printed
    to_hub, to_spoke = printed.to_client, printed.to_server
    bad = {each.path for each in printed.failed}
    arrived = [path for path in printed.copied if path not in bad]
    if pair.client is pair.spoke:
        to_hub, to_spoke = to_spoke, to_hub
    return msgspec.structs.replace(
        outcome,
        code=code_of(done),
        transferred=printed.transferred,
        to_hub=to_hub,
        to_spoke=to_spoke,
        size=_size(pair.client, arrived) if pair.client.here else None,
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
