"""forward: reach a port of a run's node from this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.cli.values import Number
from yurt.contexts import connect, folders
from yurt.errors import RefusedError, UserError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.running import running
from yurt.model.result import Result
from yurt.services import ports as forwarding
from yurt.services import status as statuses
from yurt.services.status import ServiceStatus
from yurt.store import Entry

if TYPE_CHECKING:
    from yurt.model.result import Result


PORTS = range(1, 65536)

OFTEN, SELDOM = 2.0, 60.0
"""Seconds between two queries whether the run has ended, on this machine and on a cluster."""


class Forwarded(msgspec.Struct, frozen=True, kw_only=True):
    """A port of this machine that leads to a program on a node."""

    run: str
    node: str
    port: int | None
    """The port on the node; null for a unix socket."""
    socket: str = ""
    """The path of the unix socket on the node."""
    local: int
    """The port of this machine, on 127.0.0.1."""


def parse(text: str) -> tuple[str, int | str]:
    """Return the run and the address of RUN:PORT, or of RUN:/PATH for a unix socket. UserError."""
    name, colon, address = text.rpartition(":")
    if name and address.startswith("/"):
        return name, address
    if not (colon and name and address.isascii() and address.isdigit() and int(address) in PORTS):
        raise UserError(
            f"'{text}' is not RUN:PORT",
            code="usage",
            hint="for example: `yurt forward @last:8080`, or for a unix socket: `yurt forward @last:/tmp/app.sock`",
        )
    return name, int(address)


def forward(
    text: str,
    *,
    local: int = 0,
    on_open: Callable[[Result[Forwarded]], None],
    on_word: Callable[[str], None],
) -> str:
    """Forward a port of this machine to one of a run until Ctrl-C, or until the run ends; return why it ended.

    `on_open` is called once the node is reached.
    """
    name, address = parse(text)
    forwarding.check(local)
    store = folders.store()
    entry = running(store, name)
    run = entry.run
    if run.purpose == "service" and isinstance(address, int) and _status(entry).port != address:
        raise RefusedError(
            f"service '{run.name}' has no port that others could reach",
            code="impossible",
            hint=f"open it with `yurt serve open {run.name}`",
        )
    here = forwarding.listen(local)
    found = Forwarded(
        run=run.id,
        node=entry.status.node,
        port=address if isinstance(address, int) else None,
        socket=address if isinstance(address, str) else "",
        local=here,
    )
    result = Result(kind="forwarded", data=found)

    def program(words: str) -> list[str]:
        (placement,) = entry.placements
        return connect.named_backend(run.context).exec.relay(placement, words)

    def is_over() -> bool:
        with store.twin() as index:
            refresh_contexts(index, [run.context])
            now = index.get(run.id)
            return now is None or now.status.final

    forwarding.forward(
        program,
        [(here, address)],
        is_over=is_over,
        interval=OFTEN if kind_of(run.context_type).here else SELDOM,
        on_open=lambda: on_open(result),
        on_word=on_word,
    )
    return f"run {run.id} has ended"


def _status(entry: Entry) -> ServiceStatus:
    files = connect.named_backend(entry.run.context).files
    return statuses.read(files.read(entry.run.folder, statuses.FILE)) or ServiceStatus()


EXAMPLES = ["yurt forward @last:8080", "yurt forward x7q4z:6006 --local 6006", "yurt forward @last:/tmp/app.sock"]


@verb(examples=EXAMPLES, context_help="")
@argument("target", metavar="RUN:PORT")
@option("--local", metavar="PORT", type=Number(1), help="The port of this machine (default: any free one).")
def forward_command(target: str, local: int | None) -> int:
    """Reach a program that listens on the node of a run.

    Forwards a port of this machine to a port of the node. The program may listen on the loopback of its node
    (127.0.0.1); RUN:/PATH is a unix socket. All connections go through one ssh connection and one step of the job.
    After a lost connection yurt connects again. Ends with the run, or with Ctrl-C. Other users of this machine can
    connect to the port, too.
    """

    call.enable_gc()
    try:
        word = forward(target, local=local or 0, on_open=_opened, on_word=_say)
    except KeyboardInterrupt:
        return 0
    _say(word)
    return 0


def _opened(found: Result[Forwarded]) -> None:
    if call.current().json:
        render.stream(found.kind, found.data)
        return
    each = found.data
    far = each.socket or f"port {each.port}"
    print(render.plain(f"127.0.0.1:{each.local} leads to {far} of {each.node or each.run}; Ctrl-C ends it"), flush=True)


def _say(text: str) -> None:
    if not call.current().quiet:
        print(render.plain(text), file=sys.stderr, flush=True)
