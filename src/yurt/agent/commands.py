"""`yurt agent`: submit saved runs, refresh states and sync homes in the background."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import Group, verb
from yurt.cli.option_types import Number

if TYPE_CHECKING:
    from yurt.agent.start_stop import AgentStatus


@click.group(cls=Group, examples=["yurt agent start", "yurt agent status", "yurt agent once"], context_help="")
def agent() -> None:
    """Submit saved runs and refresh states.

    Submits saved runs and sends saved cancellations on all contexts, and syncs homes when that is due. Every verb does
    its part of this; the agent does it while you type nothing.
    """


@verb(agent, examples=["yurt agent start", "yurt agent start --interval 1m"], context_help="")
@click.option(
    "--interval",
    metavar="TIME",
    default="",
    help="The time between two rounds while runs are unfinished (default: 30s).",
)
@click.option(
    "--budget",
    metavar="N",
    type=Number(5),
    default=20,
    show_default=True,
    help="Send at most N commands a minute to a context.",
)
@click.option("--foreground", is_flag=True, help="Stay in this terminal, for systemd and launchd.")
@click.option(
    "--unit",
    type=click.Choice(["systemd", "launchd"]),
    help="Print a file with which the system starts the agent at login, and do nothing else.",
)
def start(*, interval: str, budget: int, foreground: bool, unit: str | None) -> int:
    """Start the agent in the background.

    It repeats what `yurt agent once` does, less often while nothing changes, and at once when another yurt command has
    saved a run. Stopping or killing it loses nothing: the next yurt command, or the next agent, goes on.
    """
    from yurt.agent import start_stop as verbs

    seconds = verbs.read_interval(interval)
    if unit is not None:
        print(verbs.unit(unit), end="")
        return 0
    if foreground:
        app.enable_gc()
        verbs.foreground(seconds, _log, budget)
        return 0
    found = verbs.start(seconds, budget)
    return render.result(found, lambda: print_status(found.data))


@verb(agent, examples=["yurt agent status", "yurt agent status --json"], context_help="")
def status() -> int:
    """Show whether the agent is running, and what it did.

    The exit code is 1 if it is not running.
    """
    from yurt.agent import start_stop as verbs

    found = verbs.status()
    return render.result(found, lambda: print_status(found.data))


@verb(agent, examples=["yurt agent stop"], context_help="")
def stop() -> int:
    """Stop the agent.

    It finishes its current round first. What it has not done yet is done by the next yurt command.
    """
    from yurt.agent import start_stop as verbs

    found = verbs.stop()
    return render.result(found, lambda: print_status(found.data))


def _log(text: str) -> None:
    with suppress(OSError):  # a full disk: the agent goes on
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')}  {text}", flush=True)


def print_status(found: AgentStatus) -> None:
    """Print the agent's state, one fact per line."""
    state = found.state
    if not found.running or state is None:
        print("the agent is not running")
        return
    where = "" if state.host == os.uname().nodename else f" on {state.host}"
    print(render.plain(f"the agent is running (process {state.pid}{where}, since {_clock(state.began)})"))
    if state.last is not None:
        print(render.plain(f"last round: {_clock(state.last)}, {state.did}"))
    if state.next is not None:
        print(f"next round: {_clock(state.next)}")
    for context, number in state.operations.items():
        opened = state.connections.get(context, 0)
        sent = f"{number} of at most {state.budget} commands a minute, {render.count(opened, 'new connection')}"
        print(render.plain(f"{context}: {sent}"))
    for problem in state.problems:
        print(render.plain(f"problem: {problem.splitlines()[-1]}"))
    print(render.plain(f"log: {found.log}"))


def _clock(at: float) -> str:
    day = "" if time.strftime("%F", time.localtime(at)) == time.strftime("%F") else "%F "
    return time.strftime(f"{day}%H:%M:%S", time.localtime(at))


@verb(agent, examples=["yurt agent once", "yurt agent once --quiet", "yurt agent once --json"], context_help="")
def once() -> int:
    """Submit saved runs and refresh states once.

    Also syncs homes if the `interval` of homes.yaml is over, or if a run waits for a home sync.

    To do this every five minutes, add this line to your crontab, with the path that `command -v yurt` prints:

    \b
        */5 * * * * $HOME/.local/bin/yurt agent once --quiet
    """
    from yurt.agent import agent as verbs
    from yurt.cli.progress import watching

    with watching() as watch:
        found = verbs.once(watch=watch)

    def print_text() -> None:
        done = found.data
        contexts = render.count(len(done.contexts), "context")
        synced = f", {render.count(len(done.synced), 'pair')} of homes synced" if done.synced else ""
        print(f"{len(done.submitted)} submitted, {len(done.pending)} waiting, {contexts} refreshed{synced}")

    return render.result(found, print_text)
