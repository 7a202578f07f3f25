"""agent start, status, stop: the agent as a process of its own."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import msgspec

from yurt import __version__
from yurt.agent import agent, process, units
from yurt.agent.loop import BUDGET, Done, Loop
from yurt.contexts import agent_state as state
from yurt.contexts import folders, traffic
from yurt.contexts.agent_state import AgentState
from yurt.errors import UserError, YurtError
from yurt.model.resources import parse_seconds
from yurt.model.result import Result

INTERVAL = "30s"
SHORTEST = 5.0


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the agent runs, and what it last did."""

    running: bool
    """Whether it runs now."""
    log: str
    """Its log."""
    state: AgentState | None = None
    """What it last wrote about itself; null if it never ran."""


def read_interval(text: str) -> float:
    """Return the seconds between two rounds. UserError if the text is no duration, or a short one."""
    try:
        seconds = float(parse_seconds(text or INTERVAL))
    except ValueError as error:
        raise UserError(
            f"--interval {error}, not '{text}'", code="usage", hint="for example: `--interval 1m`"
        ) from None
    if seconds < SHORTEST:
        raise UserError(f"--interval must be at least {SHORTEST:g}s, not '{text}'", code="usage")
    return seconds


def start(interval: float, budget: int = BUDGET) -> Result[AgentStatus]:
    """Start the agent, unless it runs already."""
    already = state.is_running()
    if not already:
        process.launch(interval, budget)
    found = status()
    warnings = ["the agent was already running"] if already else []
    return Result(kind="agent-status", data=found.data, warnings=[*warnings, *found.warnings])


def stop() -> Result[AgentStatus]:
    """Stop the agent, if it runs."""
    warnings = [] if process.stop() else ["the agent was not running"]
    return Result(kind="agent-status", data=status().data, warnings=warnings)


def status() -> Result[AgentStatus]:
    """Return whether the agent runs, and what it did last. The exit code is 1 if it does not run."""
    running, known = state.is_running(), state.read()
    data = AgentStatus(running=running, log=str(state.log_file()), state=known)
    older = running and known is not None and known.version != __version__
    warnings = ["the agent runs another version of yurt; stop it, and start it again"] if older else []
    return Result(kind="agent-status", data=data, warnings=warnings, exit_code=0 if running else 1)


def unit(kind: str) -> str:
    """Return a file for systemd or launchd that starts the agent."""
    make = units.systemd if kind == "systemd" else units.launchd
    return make([*process.program(), "agent", "start", "--foreground"])


def foreground(interval: float, say: Callable[[str], None], budget: int = BUDGET) -> None:
    """Be the agent until SIGTERM or SIGINT. `say` gets one line about each round in which something happened.

    RefusedError if there is an agent already.
    """
    with state.held() as still:
        told: list[str] = []
        me = AgentState(
            pid=os.getpid(),
            host=os.uname().nodename,
            version=__version__,
            began=time.time(),
            interval=interval,
            budget=budget,
        )
        state.write(me)
        say(f"the agent has started (process {me.pid})")
        rounds = 0

        def on_round(done: Done, following: float) -> None:
            nonlocal rounds
            rounds += 1
            for problem in done.problems:
                if problem not in told:
                    say(problem)
            told[:] = done.problems
            if done.changed:
                say(done.text)
            process.rotate_log()
            now = msgspec.structs.replace(
                me,
                rounds=rounds,
                last=time.time(),
                next=following,
                did=done.text,
                problems=done.problems,
                operations=traffic.commands(),
                connections=traffic.connections(),
            )
            with suppress(OSError):  # a full disk: the agent goes on
                state.write(now)

        def wanted() -> object:
            if not still():
                repeated.stop()
            return _wanted()

        repeated = Loop(
            _round,
            interval=interval,
            budget=budget,
            wanted=wanted,
            operations=traffic.commands,
            on_round=on_round,
        )

        def on_signal(_number: int, _frame: FrameType | None) -> None:
            repeated.stop()

        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, on_signal)
        repeated.run()
        say("the agent has stopped")


def _round() -> Done:
    """Do one round. Whatever goes wrong, the agent goes on."""
    try:
        found = agent.once()
    except YurtError as error:
        return Done(text="", problems=[error.text])
    except Exception:
        return Done(text="", problems=[traceback.format_exc()])
    done = found.data
    texts = [
        f"{len(done.submitted)} submitted" if done.submitted else "",
        f"{len(done.pending)} waiting" if done.pending else "",
        f"{', '.join(done.synced)} synced" if done.synced else "",
        f"looked at {', '.join(done.contexts)}" if done.contexts else "nothing to do",
    ]
    return Done(
        text=", ".join(text for text in texts if text),
        problems=found.warnings,
        changed=bool(done.submitted or done.synced or done.changed),
        unfinished=bool(done.contexts),
        due=done.due,
    )


def _wanted() -> object:
    """Return what differs if another process has left work: it asked for a round, or saved a run."""
    stamp = []
    for end in ("", "-wal"):
        with suppress(OSError):
            stamp.append(os.stat(f"{folders.index_file()}{end}").st_mtime_ns)
    if stamp != _seen.stamp:
        with suppress(YurtError), folders.store() as store:
            contexts = store.contexts_of_unfinished()
            _seen.stamp, _seen.work = stamp, {name: store.outbox(name) for name in contexts}
    return state.asked(), _seen.work


class _Seen:
    """The index of runs when it was last read."""

    stamp: list[int] | None = None
    work: dict[str, list[str]] | None = None


_seen = _Seen()
