"""dev restore: bring a version of a workspace back, on the dev node or on this machine."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.contexts import folders, outside_files
from yurt.dev import find as dev_find
from yurt.dev import moments
from yurt.dev.ask import part
from yurt.dev.backup import asked
from yurt.dev.copy import bring
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.workspace import Version

RELATIVE = "a path is relative to the workspace, such as `src/train.py`"


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A version, or some paths of it, that was restored."""

    name: str
    context: str
    version: int
    """The number of the version."""
    folder: str
    """Where the files are now: on the node, or on this machine."""
    here: bool
    """Whether that is on this machine."""
    aside: str = ""
    """The folder on the node to which the workspace was moved, if it was replaced."""
    paths: list[str] = []
    """The restored paths; empty if all were restored."""


def find(name: str, at: str, *, context: str = "") -> tuple[dev_find.Backups, Version]:
    """Return the backups of a workspace, and the version that `at` names, the newest by default."""
    there = dev_find.backups(name, context)
    return there, moments.chosen(there.found.versions, at, time.time())


def on_node(
    name: str, at: str, paths: Sequence[str] = (), *, context: str = "", watch: Watch = unwatched
) -> Result[Restored]:
    """Restore a version through the running dev node.

    The whole workspace is saved, moved aside and replaced; some paths are restored into a new folder beside it.
    """
    store = folders.store()
    entry = dev_find.running(store, name, context).entry
    _there, version = find(name, at, context=entry.run.context)
    request = {"do": "restore", "version": version.number, "paths": list(paths)}
    try:
        answer = asked(name, entry, request, watch)
    except NotFoundError as error:
        error.hint = RELATIVE if paths else error.hint
        raise
    done = Restored(
        name=name,
        context=entry.run.context,
        version=version.number,
        folder=str(answer.get("folder") or answer.get("workspace") or ""),
        here=False,
        aside=str(answer.get("aside") or ""),
        paths=[_shown(each) for each in part(entry, answer, "paths", list[str]) or ()],
    )
    return Result(kind="dev-restored", data=done)


def to_folder(
    name: str, at: str, paths: Sequence[str], folder: str, *, context: str = "", watch: Watch = unwatched
) -> Result[Restored]:
    """Restore a version into a new folder of this machine. It is complete, or not there. UserError: it exists."""
    target = Path(folder).expanduser().absolute()
    outside_files.check_target(target)
    if os.path.lexists(target):
        raise UserError(f"'{folder}' exists already", code="usage", hint="name a folder that does not exist")
    if not target.parent.is_dir():
        raise UserError(f"the folder above '{folder}' does not exist", code="usage", hint="create it first")
    there, version = find(name, at, context=context)
    if not paths:
        dev_find.check_whole(there, version)
    try:
        aside = tempfile.TemporaryDirectory(prefix=".yurt-dev-", dir=target.parent)
    except OSError as error:
        raise RefusedError(
            f"cannot write in {target.parent}: {error.strerror}", code="cannot-write", hint="name another folder"
        ) from None
    with aside as temporary:
        restored = _restore(there, version, paths, (Path(temporary), target), watch)
    done = Restored(
        name=name,
        context=there.context.name,
        version=version.number,
        folder=str(target),
        here=True,
        paths=[_shown(each) for each in restored],
    )
    return Result(kind="dev-restored", data=done)


def _shown(path: str) -> str:
    """Return a path that JSON can hold: with a backslash and hexadecimal digits for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _restore(
    there: dev_find.Backups, version: Version, paths: Sequence[str], places: tuple[Path, Path], watch: Watch
) -> list[str]:
    """Download what is needed into the first of two folders, and restore it as the second."""
    from yurt.node import backup
    from yurt.storage.here import reset_modes

    def on_progress(phase: str, done: int, total: int) -> None:
        watch(Event(phase, done, total, bytes=True))

    (here, target), number = places, version.number
    fresh, done = here / "restored", []
    try:
        bring(there, number, here, watch, paths)
        if paths:
            done = backup.restore_paths(str(here), number, list(paths), str(fresh), on_progress=on_progress, acls=False)
        else:  # users of the site in an access list may be others on this machine
            backup.restore(str(here), number, str(fresh), on_progress=on_progress, acls=False)
        reset_modes(fresh)
        fresh.rename(target)
    except backup.MissingPathError as error:
        raise NotFoundError(str(error), code="not-found", hint=RELATIVE) from None
    except backup.DamagedError as error:
        file, how, what_to_do = error.name, error.what, dev_find.recovery(there, version, damaged=error.name)
        raise RefusedError(
            f"cannot restore v{number}: its file {file} is {how}", code="site-refused", hint=what_to_do
        ) from None
    except backup.BackupError as error:
        raise RefusedError(f"cannot restore v{number}: {error}", code="site-refused") from None
    return done
