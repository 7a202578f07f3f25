"""Copies files from one context to another, without a copy on this machine."""

from __future__ import annotations

import contextlib
import posixpath
from pathlib import Path

from yurt.errors import UserError
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.storage import here, transfer
from yurt.storage.spots import Spot
from yurt.transport import rsync_direct, rsync_process, rsync_through, tar_copy
from yurt.transport.side import Side
from yurt.transport.ssh import SshHost


def copy(source: Spot, target: Spot, manner: Manner, progress: Progress) -> tuple[Moved, str]:
    """Copy a file or folder; return what was done, and its path on the target's context.

    rsync on the source's login node copies it directly if ssh from there reaches the other without a prompt; otherwise
    the bytes pass through this machine. UnreachableError: a retry continues.
    """
    place = target.below(posixpath.basename(source.path)) if target.inside else target
    if source.path == "/":
        raise UserError(f"'{source}' is the root of the file system", code="usage", hint="name a folder below it")
    transfer.check_target(place)
    if source.here:
        return transfer.put([Path(source.path)], place, manner, progress)
    if place.here:
        here.check_own(Path(place.path))
        return transfer.get(source, Path(place.path), manner, progress), place.path
    same = source.context.name == place.context.name
    guard = place.guard(delete=manner.delete, sources=[source.path] if same else [])
    side = Side(place.host, place.path, guard)
    if manner.dry and not transfer.has_folder(side):
        return Moved(), place.path
    with contextlib.suppress(rsync_process.Strange):
        address = "" if same else _address(place)
        return _by_rsync(_side(source), side, manner, progress, address=address, same=same), place.path
    tar_copy.without_delete(manner.delete)
    folder = transfer.look(source)[0] == "folder"
    return tar_copy.between(_side(source), side, progress, folder=folder), place.path


def _by_rsync(source: Side, target: Side, manner: Manner, progress: Progress, *, address: str, same: bool) -> Moved:
    if same or address:
        done = rsync_direct.direct(source, target, manner, progress, address=address)
        if done is not None:
            return done
    return rsync_through.through(source, target, manner, progress)


def _address(place: Spot) -> str:
    """Return how other login nodes reach that of a context."""
    if place.context.race_address:
        return place.context.race_address
    host = place.host
    return host.destination.removeprefix("ssh://").partition(":")[0] if isinstance(host, SshHost) else ""


def _side(place: Spot) -> Side:
    return Side(place.host, place.path)
