"""When a version cannot be restored: where its files may still be, whether the disk has room, and what to type."""

import os
import time
from typing import Optional, Tuple

from yurt.node import backup
from yurt.node.dev.config import Config
from yurt.node.dev.place import Place
from yurt.node.files import NodeError


def damaged(
    error: backup.DamagedError, config: Config, number: int, whole: Optional[backup.Version], *, running: bool
) -> NodeError:
    """Return the error for a version with a damaged file: it names a live copy first, then the newest whole version.

    `running`: the dev node has a workspace, so that the user can choose another version to restore there.
    """
    own = "" if config.name == "default" else " " + config.name
    at = " --context %s" % config.context if config.context else ""
    ways = []
    newest = backup.newest(config.backups)
    if not running and newest and newest.number == number and newest.host not in ("", os.uname().nodename):
        node = newest.host.partition(".")[0]
        ways.append("%s may still have its files: `yurt dev up%s%s --node %s`" % (node, own, at, node))
    if whole is not None:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(whole.time))
        if running:
            command = "`yurt dev restore%s --at v%d`" % (own and " --name" + own, whole.number)
        else:
            command = "`yurt dev up%s%s --restore v%d`" % (own, at, whole.number)
        ways.append("the newest version without damage is v%d of %s: %s" % (whole.number, moment, command))
    what = "v%d cannot be restored: its file %s is %s" % (number, error.name, error.what)
    return NodeError("; ".join([what, *ways]))


def room(place: Place, config: Config, number: int) -> Tuple[int, int]:
    """Return the bytes that a version needs on the disk, 0 if that is unknown, and those that are free there."""
    disk = os.statvfs(place.beside)
    return backup.room(config.backups, number), disk.f_bavail * disk.f_frsize


def too_full(place: Place, number: int, needed: int, free: int) -> NodeError:
    """Return the error for a disk without room for a version. It names older copies of the workspace there."""
    above, name = os.path.split(place.workspace)
    beside = " beside the present workspace" if os.path.isdir(place.workspace) else ""
    text = "v%d needs %s, and %s on %s has %s free%s; use another node, or remove what you do not need"
    older = ", ".join(sorted(each for each in os.listdir(above) if each.startswith(name + "."))[:5])
    text %= (number, size(needed), above, os.uname().nodename, size(free), beside)
    return NodeError(text + (", such as %s" % older if older else ""))


def size(count: float) -> str:
    """Return a size for people: 3.2 MB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return "%.1f %s" % (count, unit) if unit != "B" else "%d B" % count
        count /= 1000.0
    return "%.1f TB" % count
