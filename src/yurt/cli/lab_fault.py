"""`yurt lab fault …`: each fault is a command of its own."""

from __future__ import annotations

from typing import Any

import click

from yurt.cli import progress, render
from yurt.cli.app import Group, verb
from yurt.cli.lab import instance_option
from yurt.verbs import lab as verbs

NO_TARGET = ("link", "unlink")


@click.group(cls=Group, examples=["yurt lab fault cut alpha", "yurt lab fault heal alpha"])
def fault() -> None:
    """Break something real in the lab, or heal it.

    TARGET is a cluster (alpha) or a host of one (beta:login2); for disks alpha:home, alpha:scratch,
    alpha:project or a node's own disk (alpha:n1). A fault stays until its opposite.
    """


def _add(kind: str, line: str, example: str) -> None:
    def run(instance: str, target: str = "") -> None:
        with progress.watching():
            done = verbs.fault(kind, target, name=instance)
        render.result(done, lambda: print(f"done: {kind} {target}".rstrip()))

    run.__doc__ = line[:1].upper() + line[1:] + "."
    decorated: Any = instance_option(run)
    if kind not in NO_TARGET:
        decorated = click.argument("target", metavar="TARGET")(decorated)
    verb(fault, name=kind, examples=[example])(decorated)


for _kind, (_line, _example) in verbs.FAULTS.items():
    _add(_kind, _line, _example)


@verb(
    fault,
    examples=[
        "yurt lab fault delay alpha --ms 150",
        "yurt lab fault delay beta --rate 100000",
        "yurt lab fault delay alpha --cut-at 4096 --direction down --connections 1",
    ],
)
@click.argument("target", metavar="TARGET")
@instance_option
@click.option("--ms", "delay_ms", type=click.FloatRange(min=0), default=0, help="Milliseconds added each way.")
@click.option("--rate", type=click.IntRange(min=0), default=0, help="Bytes per second each way; 0 is no limit.")
@click.option("--cut-at", type=click.IntRange(min=-1), default=-1, help="Cut after exactly this many bytes.")
@click.option("--direction", type=click.Choice(["up", "down", "both"]), default="up", help="Which way --cut-at counts.")
@click.option("--ending", type=click.Choice(["reset", "stall"]), default="reset", help="How a cut looks.")
@click.option("--connections", type=click.IntRange(min=0), default=0, help="Only the next N connections; 0 is all.")
def delay(target: str, instance: str, **rules: Any) -> None:
    """Delay, throttle or cut new connections to a login host; `heal` ends it."""
    render.result(verbs.delay(target, rules, name=instance), lambda: print(f"done: delay {target}"))
