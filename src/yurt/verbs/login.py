"""login: open the connection to a site, the only verb that lets ssh ask questions."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yurt.config import contexts
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.sites.connect import ssh_host
from yurt.verbs.result import Result


class LoggedIn(msgspec.Struct, frozen=True):
    """How the connection to a context stands now, and whether this call made it so."""

    context: str
    destination: str
    connected: bool
    changed: bool


def login(names: Sequence[str] = (), *, context: str = "", may_prompt: bool = False) -> Result[list[LoggedIn]]:
    """Have an open connection to each context, else to the current one.

    With a person at a terminal (`may_prompt`), ssh may ask for what it needs.
    """
    return Result(kind="login", data=[_open(each, may_prompt=may_prompt) for each in _named(names, context)])


def logout(names: Sequence[str] = (), *, context: str = "") -> Result[list[LoggedIn]]:
    """End the connection to each context, else to the current one; nothing happens where there is none."""
    return Result(kind="login", data=[_close(each) for each in _named(names, context)])


def _named(names: Sequence[str], context: str) -> list[Context]:
    """All of them are looked up before one is connected to."""
    return [contexts.named(name) for name in names or (contexts.current_name(context),)]


def _open(context: Context, *, may_prompt: bool) -> LoggedIn:
    host = ssh_host(context)
    if host is None:
        raise UserError(f"context '{context.name}' needs no login: it is this machine", code="usage")
    if may_prompt:
        return LoggedIn(context.name, host.destination, True, host.log_in())
    before = host.connected()
    host.run("true")
    return LoggedIn(context.name, host.destination, True, not before)


def _close(context: Context) -> LoggedIn:
    host = ssh_host(context)
    open_now = host is not None and host.connected()
    if host is not None and open_now:
        host.master.close()
    return LoggedIn(context.name, context.slurm_url or "", False, open_now)
