"""What the job of a service says about itself: service.json in its run folder."""

from __future__ import annotations

import msgspec

from yurt.model.site_words import MALFORMED
from yurt.node.service import run

FILE = run.FILE


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of service.json."""

    phase: str = "starting"
    """starting, ready, ended, or failed before it was started."""
    node: str = ""
    program: str = ""
    way: str = ""
    """How it is private: a unix socket, a network of its own, or only a port."""
    socket: str = ""
    """The path of its unix socket on the node."""
    port: int = 0
    """Its port on the node, if every user of the node can reach it."""
    token: str = ""
    """The file on the node with the password of the program."""
    note: str = ""
    """Why it failed."""
    end: float | None = None
    """When its job reaches its time limit."""
    start: float = 0.0
    """When the job started it."""
    restarts: int = 0
    """Of the run: an earlier start of a requeued job may have written the file, on another node."""


def read(content: bytes | None) -> ServiceStatus | None:
    """Return the status; None if there is none yet."""
    try:
        return msgspec.json.decode(content or b"", type=ServiceStatus)
    except MALFORMED:
        return None
