"""`yurt forward RUN:PORT`: reach a program that listens on the node of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.cli.option_types import Number

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.services.forward import Forwarded

EXAMPLES = ["yurt forward @last:8080", "yurt forward x7q4z:6006 --local 6006", "yurt forward @last:/tmp/app.sock"]


@verb(examples=EXAMPLES, context_help="")
@click.argument("target", metavar="RUN:PORT")
@click.option("--local", metavar="PORT", type=Number(1), help="The port of this machine (default: any free one).")
def forward(target: str, local: int | None) -> int:
    """Reach a program that listens on the node of a run.

    Forwards a port of this machine to a port of the node. The program may listen on the loopback of its node
    (127.0.0.1); RUN:/PATH is a unix socket. All connections go through one ssh connection and one step of the job.
    After a lost connection yurt connects again. Ends with the run, or with Ctrl-C. Other users of this machine can
    connect to the port, too.
    """
    from yurt.services import forward as verbs

    app.enable_gc()
    try:
        word = verbs.forward(target, local=local or 0, on_open=_opened, on_word=_say)
    except KeyboardInterrupt:
        return 0
    _say(word)
    return 0


def _opened(found: Result[Forwarded]) -> None:
    if app.current().json:
        render.stream(found.kind, found.data)
        return
    each = found.data
    far = each.socket or f"port {each.port}"
    print(render.plain(f"127.0.0.1:{each.local} leads to {far} of {each.node or each.run}; Ctrl-C ends it"), flush=True)


def _say(text: str) -> None:
    if not app.current().quiet:
        print(render.plain(text), file=sys.stderr, flush=True)
