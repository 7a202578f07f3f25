"""login: open the connection to a site, the only verb that lets ssh ask questions."""

from __future__ import annotations

import msgspec

from yurt.errors import UserError
from yurt.model.context import Context
from yurt.sites.connect import ssh_host


class LoggedIn(msgspec.Struct, frozen=True):
    """How the connection to a context stands now, and whether this call made it so."""

    context: str
    destination: str
    connected: bool
    changed: bool


def login(context: Context, *, may_prompt: bool) -> LoggedIn:
    """Have an open connection to a context; with a person at a terminal, ssh may ask for what it needs."""
    host = ssh_host(context)
    if host is None:
        raise UserError(f"context '{context.name}' needs no login: it is this machine", code="usage")
    if may_prompt:
        return LoggedIn(context.name, host.destination, True, host.log_in())
    before = host.connected()
    host.run("true")
    return LoggedIn(context.name, host.destination, True, not before)


def logout(context: Context) -> LoggedIn:
    """End the connection to a context; nothing happens where there is none."""
    host = ssh_host(context)
    open_now = host is not None and host.connected()
    if host is not None and open_now:
        host.master.close()
    return LoggedIn(context.name, context.slurm_url or "", False, open_now)
