"""login: open the connection to a site. Only this verb and `context add` let ssh prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts
from yurt.contexts.connect import ssh_host
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.result import Result


class LoggedIn(msgspec.Struct, frozen=True):
    """Whether the connection to a context is open now, and whether this call changed that."""

    context: str
    destination: str
    connected: bool
    changed: bool


def login(names: Sequence[str] = (), *, context: str = "", may_prompt: bool = False) -> Result[list[LoggedIn]]:
    """Open the connection to each context, by default to the current one.

    With `may_prompt`, ssh may prompt on the terminal.
    """
    return Result(kind="login", data=[_open(each, may_prompt=may_prompt) for each in _named(names, context)])


def logout(names: Sequence[str] = (), *, context: str = "") -> Result[list[LoggedIn]]:
    """Close the connection to each context, by default to the current one. Does nothing if there is none."""
    return Result(kind="login", data=[_close(each) for each in _named(names, context)])


def _named(names: Sequence[str], context: str) -> list[Context]:
    """Look up all contexts, before the first connection."""
    return [contexts.site(name) for name in names or (contexts.current_name(context),)]


def _open(context: Context, *, may_prompt: bool) -> LoggedIn:
    host = ssh_host(context)
    if host is None:
        others = contexts.load(contexts.default_file()).contexts.values()
        name = next((each.name for each in others if each.type == "slurm"), "")
        raise UserError(
            f"context '{context.name}' is this machine and needs no login",
            code="usage",
            hint=f"name a Slurm context, for example: `yurt login {name}`"
            if name
            else "add a cluster with `yurt context add NAME --slurm-url USER@HOST`",
        )
    host.note_response()  # it gets all the time, also if it did not respond a moment ago
    if may_prompt:
        changed = host.log_in()
        if not changed:
            host.run("true")  # an open connection may be dead
        return LoggedIn(context.name, host.destination, True, changed)
    before = host.connected()
    host.run("true")
    return LoggedIn(context.name, host.destination, True, not before)


def _close(context: Context) -> LoggedIn:
    host = ssh_host(context)
    open_now = host is not None and host.connected()
    if host is not None and open_now:
        host.master.close()
    return LoggedIn(context.name, context.slurm_url or "", False, open_now)


@verb(examples=["yurt login", "yurt login alpha beta", "yurt login alpha --close"])
@argument("contexts", nargs=-1, metavar="[CONTEXT]...", shell_complete=context_names)
@option("--close", is_flag=True, help="Close the connections instead.")
def login_command(contexts: tuple[str, ...], close: bool) -> None:
    """Log in to sites and keep the connections open.

    Opens a connection to each CONTEXT, or to the current context. Only this command and `yurt context add` ask for
    a password, passphrase or one-time code, or ask you to confirm a host key. The connection stays open for twelve
    hours after its last use.
    """

    now = call.current()
    if close:
        done = logout(contexts, context=now.context)
    else:
        may_prompt = sys.stdin.isatty() and sys.stderr.isatty() and not now.json
        done = login(contexts, context=now.context, may_prompt=may_prompt)

    def print_text() -> None:
        for each in done.data:
            unchanged, changed = ("not connected", "closed") if close else ("already connected", "connected")
            state = changed if each.changed else unchanged
            print(f"{each.context}: {state} ({each.destination})")

    render.result(done, print_text)
