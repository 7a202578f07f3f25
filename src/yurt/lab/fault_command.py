"""`yurt lab fault …`: one command for each fault."""

from __future__ import annotations

from typing import Any

import click

from yurt.cli import progress, render
from yurt.cli.app import Group, verb
from yurt.cli.option_types import Number
from yurt.lab import manage as verbs
from yurt.lab.commands import instance_option

NO_TARGET = ("link", "unlink")


@click.group(cls=Group, examples=["yurt lab fault cut alpha", "yurt lab fault heal alpha"], context_help="")
def fault() -> None:
    """Inject faults into the lab, or undo them.

    TARGET is a cluster (alpha), a host (beta:login2) or a disk: alpha:home, alpha:scratch, alpha:project, or the
    local disk of a node (alpha:n1). A fault lasts until the command that undoes it.
    """


def _add(kind: str, line: str, example: str) -> None:
    def run(instance: str, target: str = "") -> None:
        with progress.watching():
            done = verbs.fault(kind, target, name=instance)
        render.result(done, lambda: print(f"{target}: {kind}" if target else kind))

    run.__doc__ = line[:1].upper() + line[1:] + "."
    decorated: Any = instance_option(run)
    if kind not in NO_TARGET:
        decorated = click.argument("target", metavar="TARGET")(decorated)
    verb(fault, name=kind, examples=[example], context_help="")(decorated)


for _kind, (_line, _example) in verbs.FAULTS.items():
    _add(_kind, _line, _example)


@verb(
    fault,
    examples=[
        "yurt lab fault delay alpha --ms 150",
        "yurt lab fault delay beta --rate 100000",
        "yurt lab fault delay alpha --cut-at 4096 --direction down --connections 1",
    ],
    context_help="",
)
@click.argument("target", metavar="TARGET")
@instance_option
@click.option(
    "--ms",
    "delay_ms",
    metavar="N",
    type=Number(0, whole=False),
    default=0,
    help="Milliseconds to add in each direction.",
)
@click.option("--rate", metavar="N", type=Number(0), default=0, help="Bytes per second in each direction; 0: no limit.")
@click.option("--cut-at", metavar="N", type=Number(-1), default=-1, help="Interrupt after exactly N bytes; -1: never.")
@click.option(
    "--direction",
    type=click.Choice(["up", "down", "both"]),
    default="up",
    help="Direction whose bytes --cut-at counts.",
)
@click.option(
    "--ending",
    type=click.Choice(["reset", "stall"]),
    default="reset",
    help="How --cut-at interrupts: reset or stall the connection.",
)
@click.option(
    "--connections", metavar="N", type=Number(0), default=0, help="Affect only the next N connections; 0: all."
)
def delay(target: str, instance: str, **rules: Any) -> None:
    """Delay, throttle or interrupt new connections to a login host.

    `yurt lab fault heal` undoes it.
    """
    render.result(verbs.delay(target, rules, name=instance), lambda: print(f"{target}: delay"))
