"""dev restore: bring a version of a workspace back, on the dev node or on this machine."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
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


EXAMPLES = [
    "yurt dev restore --at '2h ago' src/train.py",
    "yurt dev restore --at v12",
    "yurt dev restore --name paper --at 2026-11-16 --to ~/paper-monday",
]


@verb(
    examples=EXAMPLES,
    context_help="The context with the backups; by default that of the last dev node of this name.",
)
@argument("paths", nargs=-1, metavar="[PATH]...")
@option("--name", metavar="NAME", default="default", help="The dev node (default: default).")
@option("--at", metavar="WHEN", default=None, help="A version (v12), or a time: 14:30, 2026-11-16, '2h ago'.")
@option("--to", "folder", metavar="FOLDER", default="", help="Restore into a new folder of this machine.")
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
def restore_command(paths: tuple[str, ...], name: str, at: str | None, folder: str, yes: bool) -> int:
    """Bring a version of a workspace back, the newest by default.

    PATH is a file or a folder in the workspace. With PATH, restores it into a new folder beside the workspace of the
    running dev node. Without PATH, replaces the workspace: it is backed up first, and moved aside. With --to, restores
    into a new folder of this machine; no dev node needs to run.
    """
    from yurt.cli.progress import watching_late

    now = call.current()
    if at is not None and not at.strip():
        from yurt.dev.moments import EXAMPLES as MOMENTS

        raise UserError("--at is empty", code="usage", hint=MOMENTS)
    at = at or ""
    if not paths and not folder and not yes:
        _there, version = find(name, at, context=now.context)
        _confirm(f"replace the workspace of dev node '{name}' by v{version.number} of {render.moment(version.time)}?")
        at = f"v{version.number}"
    with watching_late() as watch:
        if folder:
            found = to_folder(name, at, paths, folder, context=now.context, watch=watch)
        else:
            found = on_node(name, at, paths, context=now.context, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: Restored) -> None:
    what = render.count(len(done.paths), "path") + f" of v{done.version}" if done.paths else f"v{done.version}"
    where = f" to {done.folder}" if done.folder else ""
    place = "" if done.here else f" on dev node '{done.name}'"
    print(render.plain(f"restored {what}{where}{place}"))
    if done.aside:
        print(render.plain(f"the workspace as it was before is in {done.aside}; terminals in it show a message"))


def _confirm(question: str) -> None:
    """Ask the user; UserError without a terminal. Aborts if the answer is no."""
    if call.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("nothing was restored: there is no terminal to ask on", code="usage", hint="add `--yes`")
    if not confirm(question, default=False):
        raise click.Abort
