"""The sh scripts of a sync: what runs on each side, and how the sides are connected."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.backends import scripts as backend_scripts
from yurt.model import layout

HERE = Path(__file__).parent


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What the script of one side needs to know."""

    token: str
    """Names this sync, in lock, waiting jobs and backups."""
    stamp: str
    """The time of the sync, UTC, for its folder in the backups."""
    client: str
    """The identity of the machine whose yurt started the sync."""
    client_name: str
    """Its name, for people."""
    place: str
    identity: str
    """The host name under which Unison finds its archives."""
    root: str
    unison: str
    backups: str
    known: str = ""
    """`1` if this machine has synced the place before."""
    record: str = ""
    """Names the pair and the machine, for what sure.sh saves."""
    check: str = "no-check"
    """How sure.sh compares the files of which the last sync was unsure."""
    again: bool = False
    """Whether this is not the first Unison of its sync."""
    partly: bool = False
    """Whether it may not sync everything."""
    here: bool = False
    """Whether this is the machine that runs yurt: it has no jobs that wait."""
    refill: bool = False
    """Whether it has lost everything, and is filled again."""
    direct: bool = False
    """Whether a person reads what it prints, not yurt."""


def text(name: str) -> str:
    return (HERE / name).read_text()


def gate() -> str:
    """Return the functions home_waiting and home_release."""
    return backend_scripts.text("slurm.sh", "job") + layout.fill_in(text("gate.sh"))


def serve(side: Side, mark: str) -> str:
    """Return the script of the server side. It prints the mark on a line of its own before Unison's protocol."""
    return _settings(side, mark=mark) + _functions() + text("serve.sh")


def client(
    side: Side, *, locked: bool, link: str, profile: str, server_root: str, keep: bool = False, refilling: bool = False
) -> str:
    """Return the script of the client side; `link` is the program that connects it to the server.

    With `keep`, Unison copies no deletions. If it is `refilling` one of the sides, it compares everything again.
    """
    more = {"locked": "1" if locked else "", "link": link, "profile": profile, "server_root": server_root}
    more |= {"keep": "1" if keep else "", "refilling": "1" if refilling else ""}
    return _settings(side, **more) + _functions() + text("client.sh")


def finish() -> str:
    """Return the script that runs on each side after a sync."""
    return gate() + text("sure.sh") + text("backups.sh") + text("finish.sh")


def _functions() -> str:
    return gate() + text("sure.sh") + text("side.sh")


def link(ssh: Sequence[str], server: Side, mark: str) -> str:
    """Return the program that Unison calls instead of ssh. `ssh` is the command line up to the remote command."""
    script = serve(server, mark)
    size = len(script.encode(errors="surrogateescape"))
    # The login shell of the other side may be any that knows single quotes.
    remote = f"sh -c 'eval \"$(command head -c {size})\"' yurt-serve"
    head, shebang = text("link.sh"), "#!/bin/sh\n"
    reach = f'reach() {{\n    {shlex.join(ssh)} {shlex.quote(remote)}" $*"\n}}\n'
    about = {"token": server.token, "place": server.place, "direct": "1" if server.direct else ""}
    return shebang + assign(script=script, mark=mark, **about) + reach + head.removeprefix(shebang)


def _settings(side: Side, **more: str) -> str:
    values = {name: ("1" if value else "") if isinstance(value, bool) else value for name, value in _fields(side)}
    return assign(**values, **more)


def _fields(side: Side) -> list[tuple[str, str | bool]]:
    return [*msgspec.structs.asdict(side).items()]


def assign(**values: str) -> str:
    """Return assignments of variables in sh."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
