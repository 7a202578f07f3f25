"""Copies files between this machine and a context: by rsync, or as tar streams if one side has no rsync."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.model.data import Manner, Moved
from yurt.model.files import Pick, Progress, unreported
from yurt.model.site_words import count
from yurt.storage import here
from yurt.storage.contents import missing
from yurt.storage.spots import Spot
from yurt.transport import protected, room, rsync_copy, rsync_process, tar, tar_copy
from yurt.transport.base import refusal
from yurt.transport.side import Side

LOOK = """\
if [ -d "$1" ]; then echo folder; elif [ -f "$1" ]; then echo file; else echo missing; fi
if command -v rsync > /dev/null 2>&1; then echo rsync; fi
if [ -e "$1/.git" ]; then echo git; fi
if [ -f "$1" ]; then LC_ALL=C ls -Lln -- "$1" | awk 'NR == 1 { print "size=" $5 }'; fi
"""


def put(sources: Sequence[Path], target: Spot, manner: Manner, progress: Progress) -> tuple[Moved, str]:
    """Copy files and folders of this machine to a place; return what was done, and the path on the context.

    One source gets the name of the place, unless that ends with a slash; several are copied into it. UnreachableError:
    a retry continues.
    """
    check(sources)
    names = [named(each) for each in sources] if len(sources) > 1 else []
    place = target.below(named(sources[0])) if target.inside and not names else target
    check_target(place)
    if place.here:
        targets = [Path(place.path, each) for each in names] or [Path(place.path)]
        here.check_apart(sources, targets, delete=manner.delete)
    side = Side(place.host, place.path, place.guard(names, delete=manner.delete))
    if manner.dry and not has_folder(side):
        return Moved(), place.path
    if names:
        return _put(side, [str(each.absolute()) for each in sources], manner, progress, folder=True), place.path
    source = sources[0].resolve()
    folder = source.is_dir()
    return _put(side, [f"{source}/" if folder else str(source)], manner, progress, folder=folder), place.path


def _put(side: Side, sources: Sequence[str], manner: Manner, progress: Progress, *, folder: bool) -> Moved:
    if rsync_process.usable():
        with contextlib.suppress(rsync_process.Strange):
            return rsync_copy.put(side, sources, manner, progress, folder=folder)

    tar_copy.without_delete(manner.delete)
    return tar_copy.put(side, sources, progress, folder=folder)


def has_folder(side: Side) -> bool:
    """Return whether a target is a folder that exists, where files could be deleted. RefusedError if it is guarded."""
    answer = side.host.run(side.guard + LOOK, side.path)
    if answer.code:
        raise protected.refused(side.host, side.path, answer.errors) or refusal(
            side.host.name, f"cannot read {side.path}", answer.errors
        )
    return answer.text.split()[:1] == ["folder"]


def get(source: Spot, target: Path, manner: Manner, progress: Progress) -> Moved:
    """Copy a file or folder of a context to this path. UnreachableError: a retry continues.

    Into a git repository of this machine, it copies no .git, because git runs commands that it finds there.
    """
    found, tools = look(source)
    folder = found == "folder"
    if folder and here.in_repository(target):
        manner = msgspec.structs.replace(manner, no_git=True)
    if manner.delete and folder:
        here.check_delete(target)
    if source.here:
        here.check_apart([Path(source.path)], [target], delete=manner.delete)
    if manner.dry and not (folder and target.is_dir()):
        return Moved()
    make(target if folder else target.parent)
    if not folder and target.is_dir():
        raise RefusedError(
            f"'{target}' is a folder, not a file",
            code="cannot-write",
            hint=f"add a slash to copy into it: `{target.name}/`",
        )
    if not folder and not manner.dry:
        _check_room(target, tools)
    moved = _get(source, target, manner, progress, folder=folder, has_rsync="rsync" in tools)
    return msgspec.structs.replace(moved, no_git=manner.no_git and "git" in tools)


def _check_room(target: Path, tools: Sequence[str]) -> None:
    """HereIsFullError if a file does not fit on the disk of this machine. A sparse one may take no space there."""
    size = next((count(each.removeprefix("size=")) for each in tools if each.startswith("size=")), 0)
    if not target.exists() or target.stat().st_size != size:
        room.check(target.parent, size)


def _check_room_of_folder(source: Spot, target: Path, manner: Manner) -> None:
    """HereIsFullError if the files that rsync would bring do not fit; what they replace makes room for them."""
    only_asked = msgspec.structs.replace(manner, dry=True, delete=False)
    size = rsync_copy.get(source.host, f"{source.path}/", target, only_asked, unreported).size
    if size > room.free(target):
        here = (Path(inside, name) for inside, _folders, names in os.walk(target) for name in names)
        room.check(target, size - sum(each.lstat().st_blocks * 512 for each in here))


def _get(source: Spot, target: Path, manner: Manner, progress: Progress, *, folder: bool, has_rsync: bool) -> Moved:
    if has_rsync and rsync_process.usable():
        with contextlib.suppress(rsync_process.Strange):
            if folder and not manner.dry:
                _check_room_of_folder(source, target, manner)
            return rsync_copy.get(source.host, source.path + "/" * folder, target, manner, progress)

    tar_copy.without_delete(manner.delete)
    return _get_by_tar(source, target, manner, progress, folder=folder)


def look(place: Spot) -> tuple[str, list[str]]:
    """Return whether a place is a `folder` or a `file`; and `rsync`, if its host has it, `git`, `size=N`.

    NotFoundError: it is neither.
    """
    answer = place.host.run(LOOK, place.path)
    found, *tools = answer.text.split() or [""]
    if found not in ("file", "folder"):
        raise missing(place)
    return found, tools


def _get_by_tar(source: Spot, target: Path, manner: Manner, progress: Progress, *, folder: bool) -> Moved:

    if folder:
        brought = tar.bring(source.host, source.path, target, Pick(no_git=manner.no_git), progress)
        return Moved(
            files=brought.files,
            size=brought.size,
            unchanged=max(0, brought.matched - brought.files),
            vanished=brought.vanished,
            way="tar",
        )
    files, size, unchanged = tar.bring_file(source.host, source.path, target, progress)
    return Moved(files=files, size=size, unchanged=unchanged, way="tar")


def named(source: Path) -> str:
    """Return the name of a file or folder of this machine, also of `.`."""
    name = source.absolute().name
    return source.resolve().name if name == ".." else name


def check(sources: Sequence[Path]) -> None:
    """NotFoundError or UserError for a source that cannot be copied."""
    for each in sources:
        if each.resolve() == Path("/"):
            raise UserError(f"'{each}' is the root of the file system", code="usage", hint="name a folder below it")
        if not os.path.lexists(each):
            raise NotFoundError(f"'{each}' does not exist on this machine", code="not-found")
        if not each.exists():
            raise NotFoundError(f"'{each}' is a link to something that does not exist", code="not-found")
        if not each.is_dir() and not each.is_file():
            raise UserError(f"'{each}' is a special file", code="usage", hint="name a file or a folder")
        if len(sources) > 1 and each.is_symlink():
            raise UserError(f"'{each}' is a link", code="usage", hint="name what it points to, or copy it alone")
    names = [named(each) for each in sources]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise UserError(f"two sources have the name '{twice}'", code="usage", hint="copy them one after the other")


def check_target(target: Spot) -> None:
    """RefusedError for a place in yurt's own folders."""
    for own in target.own_folders():
        if f"{target.path}/".startswith(f"{own.rstrip('/')}/"):
            raise RefusedError(f"{target} is in yurt's own folder", code="site-refused", hint="choose another place")


def make(folder: Path) -> None:
    """Make a folder of this machine and its parents. RefusedError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next((each for each in (folder, *folder.parents) if os.path.lexists(each)), folder)
        raise RefusedError(
            f"'{file}' is a file, not a folder", code="cannot-write", hint="name another folder"
        ) from None
    except OSError as error:
        raise RefusedError(f"cannot make the folder '{folder}': {error.strerror}", code="cannot-write") from None
