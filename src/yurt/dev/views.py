"""A dev node as users see it: its run, and what its holder reports."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.contexts import connect
from yurt.dev.desks import Desk, ssh_name
from yurt.dev.holder import STATUS, HolderStatus, LastBackup, Progress, read
from yurt.errors import YurtError
from yurt.model.run import State

SILENCE = 240.0
"""A dev node writes its status every minute. The clocks of a site and of this machine may differ a little."""


class DevNode(msgspec.Struct, frozen=True, kw_only=True):
    """A dev node: its run, its workspace and the backups of it."""

    name: str
    run: str
    context: str
    state: State
    reason: str = ""
    job: str = ""
    """The scheduler's job; empty on this machine."""
    node: str = ""
    phase: str = ""
    """starting, restoring, creating, ready, ending or ended; empty before it has started."""
    note: str = ""
    """What the holder does now, as a sentence."""
    progress: Progress | None = None
    """How far the present step is, in bytes."""
    ends: float | None = None
    """When the job reaches its time limit."""
    workspace: str = ""
    """The folder on the node."""
    version: int = 0
    """The version that the workspace was last saved as or restored from."""
    backup: LastBackup | None = None
    """The last backup; null if there is none yet, or if `unread`."""
    next_backup: float | None = None
    """When the next backup is due."""
    failure: str = ""
    """Why the last backup failed."""
    warnings: list[str] = []
    """What the user should know about it."""
    idle_since: float | None = None
    """Since when nobody has used it; null if it is in use."""
    fork: str = ""
    """What to know about changes that were made on two nodes."""
    aside: str = ""
    """The folder on the node to which an older workspace was moved."""
    follow_up: str = ""
    """The queued run that takes over when this one ends."""
    ssh: str = ""
    """The name under which ssh reaches it."""
    seen: float | None = None
    """When the holder last wrote its status, by the clock of the node."""
    unread: bool = False
    """Whether its status could not be read, so that its phase and its backups are not known."""


def of(desk: Desk, status: HolderStatus | None, *, unread: bool = False) -> DevNode:
    """Return a dev node. `status` is None if its holder has not written one, or if it is `unread`."""
    run, now = desk.entry.run, desk.entry.status
    seen = status or HolderStatus(phase="")
    return DevNode(
        name=desk.name,
        run=run.id,
        context=run.context,
        state=now.state,
        reason=now.reason,
        job=now.job if run.context_type != "local" else "",
        node=now.node or seen.node,
        phase=seen.phase if now.state == "running" or now.final else "",
        note=seen.note,
        progress=seen.progress,
        ends=seen.end,
        workspace=seen.workspace,
        version=seen.version,
        backup=seen.backup,
        next_backup=seen.next,
        failure=seen.failure,
        warnings=seen.warnings,
        idle_since=seen.idle_since,
        fork=seen.fork,
        aside=seen.aside,
        follow_up="" if desk.follow_up is None else desk.follow_up.run.id,
        ssh=ssh_name(desk.name),
        seen=None if status is None else seen.written,
        unread=unread,
    )


def silent_for(node: DevNode, now: float) -> float:
    """Return for how many seconds a running dev node has been silent; 0 if it writes its status as it should."""
    silence = now - node.seen if node.seen is not None and node.state == "running" else 0.0
    return silence if silence > SILENCE else 0.0


def read_status(desk: Desk) -> HolderStatus | None:
    """Return what the holder of a running dev node has written; None if it has not, or is not running."""
    entry = desk.entry
    if entry.status.state != "running":
        return None
    return read(connect.named_backend(entry.run.context).files.read(entry.run.folder, STATUS))


def several(desks: Sequence[Desk]) -> tuple[list[DevNode], list[str]]:
    """Return dev nodes, and warnings about those whose status could not be read."""
    found, warnings = [], []
    for desk in desks:
        try:
            found.append(of(desk, read_status(desk)))
        except YurtError as error:
            warnings.append(f"cannot read the status of dev node '{desk.name}': {error.message}")
            found.append(of(desk, None, unread=True))
    return found, warnings
