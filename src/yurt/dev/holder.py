"""What the holder of a dev node reports about it: the content of dev.json in the run folder, and of `holder`. Pure."""

from __future__ import annotations

import msgspec

from yurt.model.site_words import MALFORMED

STATUS = "dev.json"
"""The file in the run folder."""


class Progress(msgspec.Struct, frozen=True):
    """How far a backup or a restore is, in bytes."""

    phase: str = ""
    """What is being done."""
    done: int = 0
    """Bytes so far."""
    total: int = 0
    """Bytes in all; 0 if unknown."""


class LastBackup(msgspec.Struct, frozen=True, kw_only=True):
    """The last backup of a workspace."""

    number: int
    """The number of the version."""
    time: float
    """When it was made, by the clock of the node."""
    reason: str = ""
    """Why it was made: interval, asked, down, limit and so on."""
    size: int = 0
    """Bytes of the workspace."""
    new_size: int = 0
    """Bytes that it added to the backups."""
    seconds: float = 0.0
    note: str = ""
    """What to know about it."""


class HolderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a dev node, as its holder wrote it last."""

    phase: str = "starting"
    """starting, restoring, creating, ready, ending or ended."""
    note: str = ""
    name: str = ""
    run: str = ""
    node: str = ""
    workspace: str = ""
    folder: str = ""
    socket: str = ""
    end: float | None = None
    """When the job reaches its time limit."""
    progress: Progress | None = None
    version: int = 0
    """The version that the workspace was last saved as or restored from."""
    backup: LastBackup | None = None
    next: float | None = None
    """When the next backup is due."""
    failure: str = ""
    """Why the last backup failed."""
    warnings: list[str] = []
    idle_since: float | None = None
    fork: str = ""
    aside: str = ""
    """The folder to which an older workspace was moved."""
    written: float = 0.0


class LiveHolder(msgspec.Struct, frozen=True):
    """Who writes to the backups of a workspace: the content of `holder` in their folder."""

    run: str = ""
    job: str = ""
    node: str = ""


def read(content: bytes | None) -> HolderStatus | None:
    """Return the status in dev.json; None if there is none yet, or if it is not readable."""
    if not content:
        return None
    try:
        return msgspec.json.decode(content, type=HolderStatus)
    except MALFORMED:
        return None


def read_live(content: str) -> LiveHolder | None:
    """Return the content of `holder`; None if it is not readable."""
    try:
        return msgspec.json.decode(content.encode(), type=LiveHolder) if content else None
    except MALFORMED:
        return None


def phase_text(status: HolderStatus) -> str:
    """Return the phase in words: `restoring 40 %`, `starting: waiting for the dev node on n1 to stop`."""
    progress = status.progress
    if progress is not None and progress.total > 0 and status.phase != "ready":
        return f"{status.phase} {min(100, 100 * progress.done // progress.total)} %"
    return f"{status.phase}: {status.note}" if status.phase == "starting" and status.note else status.phase
