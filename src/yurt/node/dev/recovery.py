"""When a version cannot be restored: where its files may still be, whether the disk has room, and what to type."""

import os
import shlex
import time
from typing import Dict, List, Optional, Sequence, Tuple

from yurt.node import backup
from yurt.node.dev.config import Config
from yurt.node.dev.place import Place
from yurt.node.files import NodeError

COPIES = 2
"""An error names so many nodes that may have a copy: job.sh keeps 300 letters of it."""


def damaged(
    error: backup.DamagedError,
    config: Config,
    number: int,
    whole: Optional[backup.Version],
    *,
    running: bool,
    paths: Sequence[str] = (),
) -> NodeError:
    """Return the error for a version with a damaged file: it names live copies first, then the newest whole version.

    `running`: the dev node has a workspace, so that the user can choose another version to restore there, or `paths`
    of it.
    """
    own = "" if config.name == "default" else " " + config.name
    at = " --context %s" % config.context if config.context else ""
    ways = []
    for node, latest in () if running else _copies(config, number, whole):
        files = "its files" if latest == number else "those of v%d" % latest
        restore = "" if latest == number else " --restore v%d" % latest
        ways.append("%s may still have %s: `yurt dev up%s%s --node %s%s`" % (node, files, own, at, node, restore))
    if whole is not None:
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(whole.time))
        if running:
            words = "".join(" " + shlex.quote(each) for each in paths)
            command = "`yurt dev restore%s --at v%d%s`" % (own and " --name" + own, whole.number, words)
        else:
            command = "`yurt dev up%s%s --restore v%d`" % (own, at, whole.number)
        ways.append("v%d of %s is the newest without damage: %s" % (whole.number, moment, command))
    what = "v%d cannot be restored: its file %s is %s" % (number, error.name, error.what)
    return NodeError("; ".join([what, *ways]))


def _copies(config: Config, number: int, whole: Optional[backup.Version]) -> List[Tuple[str, int]]:
    """Return the nodes that made a version later than `whole`, newest first, and which: its files may still be there.

    This node is left out if it made `number` itself: it would have used its own copy of that.
    """
    found: Dict[str, int] = {}
    for each in reversed(backup.versions(config.backups)):
        if each.host and not each.fork and (whole is None or each.number > whole.number):
            found.setdefault(each.host, each.number)
    if found.get(os.uname().nodename) == number:
        del found[os.uname().nodename]
    return [(host.partition(".")[0], latest) for host, latest in found.items()][:COPIES]


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
