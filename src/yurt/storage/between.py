"""Copies files from one context to another, without a copy on this machine."""

from __future__ import annotations

import contextlib
import posixpath
from pathlib import Path

from yurt.hosts import rsync_direct, rsync_process, rsync_through, tar_copy
from yurt.hosts.side import Side
from yurt.hosts.ssh import SshHost
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.storage import transfer
from yurt.storage.spots import Spot


def copy(source: Spot, target: Spot, manner: Manner, progress: Progress) -> tuple[Moved, str]:
    """Copy a file or folder; return what was done, and its path on the target's context.

    rsync on the source's login node copies it directly if ssh from there reaches the other without a prompt; otherwise
    the bytes pass through this machine. UnreachableError: a retry continues.
    """
    place = target.below(posixpath.basename(source.path)) if target.inside else target
    transfer.check_target(place)
    if source.here:
        return transfer.put([Path(source.path)], place, manner, progress)
    if place.here:
        return transfer.get(source, Path(place.path), manner, progress), place.path
    with contextlib.suppress(rsync_process.Strange):
        return _by_rsync(source, place, manner, progress), place.path
    tar_copy.without_delete(manner.delete)
    folder = transfer.look(source)[0] == "folder"
    return tar_copy.between(_side(source), _side(place), progress, folder=folder), place.path


def _by_rsync(source: Spot, place: Spot, manner: Manner, progress: Progress) -> Moved:
    same = source.context.name == place.context.name
    address = "" if same else _address(place)
    if same or address:
        done = rsync_direct.direct(_side(source), _side(place), manner, progress, address=address)
        if done is not None:
            return done
    return rsync_through.through(_side(source), _side(place), manner, progress)


def _address(place: Spot) -> str:
    """Return how other login nodes reach that of a context."""
    if place.context.race_address:
        return place.context.race_address
    host = place.host
    return host.destination.removeprefix("ssh://").partition(":")[0] if isinstance(host, SshHost) else ""


def _side(place: Spot) -> Side:
    return Side(place.host, place.path)
