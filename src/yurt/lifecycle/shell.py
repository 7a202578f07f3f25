"""shell: a terminal or a command in an allocation of its own, or inside a run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from yurt.clocks import clocks
from yurt.config import contexts, unused_keys
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.lifecycle.cancel import cancel_runs
from yurt.lifecycle.outbox.enqueue import enqueue
from yurt.lifecycle.plan import command
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Request
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.running import running
from yurt.lifecycle.signals import signals_interrupt
from yurt.lifecycle.starting import Waiting, until_running
from yurt.lifecycle.steps import STEPS
from yurt.lifecycle.syncing import sync_first
from yurt.model import layout
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Interrupted, Result
from yurt.store import Entry, Store

LOST = 255
"""The exit code of ssh if its connection is lost."""

ENDING = 20.0
"""Seconds within which the job of a session that has ended must be over."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session in an allocation of its own: where it was, and how it ended."""

    run: str
    context: str
    job: str
    node: str
    exit_code: int
    note: str = ""
    """Why the session ended, if not by itself."""


def open_shell(
    request: Request,
    *,
    context: str = "",
    terminal: bool,
    on_wait: Waiting = lambda _entry, _warnings: None,
    on_open: Callable[[Entry], None] = lambda _entry: None,
    on_stop: Callable[[str], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> Result[Session]:
    """Submit a job, wait until it runs, and open a terminal in it, or run the words of the request. Ends the job.

    Interrupted, also by SIGTERM and SIGHUP before the session is open: the job is cancelled, or never starts.
    UnreachableError before the submission: nothing was submitted.
    """
    with signals_interrupt():
        place = contexts.site(contexts.current_name(context))
        words = command.read(request.words, Project()).argv if request.words else []
        known = folders.known_store()
        planned = plan(place, request, index=known, offline=False, watch=watch)
        store = known or folders.store()
        run = planned.plan.run.id
        try:
            entry, warnings = enqueue(store, place, planned, watch=watch)
            (entry,), notes = sync_first(store, [entry], watch=watch)
            warnings += notes
            entry = until_running(store, entry, on_wait, before="its shell was open")
            on_open(entry)
            code = _run(entry, words, terminal=terminal)
        except KeyboardInterrupt:
            on_stop(run)
            raise Interrupted(_stop(store, run, leave=terminal)) from None
        except YurtError as error:
            note = _stop(store, run, leave=True)
            if error.exit_code == 4 and store.get(run) is not None:
                error.hint = note
            raise
        except BaseException:  # such as BrokenPipeError: the reader of the command's output exited, as `head` does
            _stop(store, run)
            raise
    done = _ended(store, entry, code)
    warnings = [*unused_keys.first_time(place.name), *warnings]
    return Result(kind="shell", data=done, warnings=warnings, exit_code=done.exit_code)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore signals that would interrupt the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(store: Store, run: str, *, leave: bool = False) -> str:
    """Cancel a run; with `leave`, not if its session is open, which can be continued. Return what happened."""
    with _uninterrupted():
        entry = store.get(run)
        if entry is None:
            return "nothing was submitted"
        if leave and entry.status.state == "running" and _attached(entry):
            return _left_open(entry)
        (done,), unreachable = cancel_runs(store, [entry])
        if unreachable is not None:
            later = f"the next yurt command that reaches {done.context} will cancel run {run}"
            return f"{done.note}; {later}"
        return f"run {run} is cancelled"


def _attached(entry: Entry) -> bool:
    """Return whether a session has begun, or may have begun, in the job of a run."""
    try:
        files = connect.named_backend(entry.run.context).files
        return files.read(entry.run.folder, layout.ATTACHED) is not None
    except UnreachableError:
        return True  # it can be continued; if there is none, the job ends by itself
    except YurtError:
        return False


def _left_open(entry: Entry) -> str:
    minutes = f"{clocks().next_session / 60:.0f} minutes"
    return (
        f"lost the connection to the shell; return to it within {minutes} with `yurt shell {entry.run.id}`,"
        f" or end it with `yurt cancel {entry.run.id}`"
    )


def _ended(store: Store, entry: Entry, code: int) -> Session:
    """Return how a session ended. One that did not end by itself has a note; one that never began is cancelled."""
    run, note = entry.run, ""
    if code:
        now = _until_over(store, entry, code)
        own = now.status.state == "completed" or (now.status.state == "failed" and now.status.exit_code == code)
        if not now.status.final and not _attached(now):  # such as Ctrl-C before the terminal was open
            cancelled = _stop(store, run.id)
            if code in (128 + signal.SIGINT, LOST):
                raise Interrupted(cancelled)
            raise RefusedError(
                f"{run.context}: cannot open a shell in job {now.status.job} (exit code {code}); {cancelled}",
                code="run-not-running",
                hint=f"see the run with `yurt show {run.id}`",
            )
        if not now.status.final:
            note, code = _left_open(now), 4
        elif not own:
            reason = f": {now.status.reason}" if now.status.reason else ""
            note = f"the job of this shell ended: it is {now.status.state.replace('_', ' ')}{reason}"
    status = entry.status
    return Session(run=run.id, context=run.context, job=status.job, node=status.node, exit_code=code, note=note)


def _until_over(store: Store, entry: Entry, code: int) -> Entry:
    """Refresh until the job of a session has ended; not for long if only the connection may have ended.

    Return at once if the session never began.
    """
    until = time.monotonic() + (3.0 if code == LOST else ENDING)
    while True:
        refresh_contexts(store, [entry.run.context], steps=STEPS, keep=False)
        entry = store.get(entry.run.id) or entry
        if entry.status.final or time.monotonic() > until or not _attached(entry):
            return entry
        time.sleep(0.3)


def shell(name: str, words: Sequence[str] = (), *, terminal: bool) -> int:
    """Open a terminal inside a run, or run a command in it, and return the exit code. RefusedError: it is not running.

    The command writes to the caller's terminal, so there is no Result to render.
    """
    entry = running(folders.store(), name)
    return _run(entry, words, terminal=terminal)


def _run(entry: Entry, words: Sequence[str], *, terminal: bool) -> int:
    (placement,) = entry.placements
    runner = connect.named_backend(entry.run.context).exec
    return runner.run(placement, words, terminal=terminal)
