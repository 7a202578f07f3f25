"""Services as users see them."""

from __future__ import annotations

import msgspec

from yurt.services.status import ServiceStatus
from yurt.store import Entry


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service: a job that runs a program that listens."""

    name: str
    run: str
    context: str
    command: list[str]
    """What it runs."""
    state: str
    reason: str = ""
    """Why it is in this state."""
    phase: str = ""
    """What its job does: starting, ready, ended or failed; empty before it runs."""
    private: str = ""
    """Why other users of the node cannot reach it: socket, or network (of its own); port if they can."""
    node: str = ""
    job: str = ""
    created: float
    ends: float | None = None
    """When its job reaches its time limit; null if that is not known."""
    url: str = ""
    """The address on this machine, with its token; empty if it is not open here."""


def service(entry: Entry, status: ServiceStatus | None, url: str = "") -> Service:
    run, now = entry.run, entry.status
    seen = status if status is not None and now.state == "running" else None
    return Service(
        name=run.name,
        run=run.id,
        context=run.context,
        command=run.command,
        state=now.state,
        reason="it will be cancelled" if now.cancel_requested else now.reason,
        phase="" if seen is None else seen.phase,
        private="" if seen is None else seen.way,
        node=now.node,
        job=now.job,
        created=run.created,
        ends=None if seen is None else seen.end,
        url=url,
    )
