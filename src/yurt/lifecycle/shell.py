"""shell: a terminal or a command in an allocation of its own, or inside a run."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import WITH_DASHES, argument, verb
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.clocks import clocks
from yurt.config import contexts, unused_keys
from yurt.contexts import connect, folders
from yurt.contexts.project import Project
from yurt.errors import RefusedError, UnreachableError, UserError, YurtError
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
from yurt.model import layout, settings
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Interrupted, Result
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.store import Entry


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


EXAMPLES = [
    "yurt shell --gpus 1 --time 1h",
    "yurt shell --context alpha --nodes 2 -- srun hostname",
    "yurt shell --gpus a100:1 -- python train.py --lr 0.1 < input.csv > output.csv",
    "yurt shell -",
    "yurt shell x7q4z nvidia-smi",
]

ENVIRONMENT = [row for row in settings.ENVIRONMENT if row.option != "secrets"]


@verb(
    command_class=WITH_DASHES,
    examples=EXAMPLES,
    interspersed=False,
)
@argument("words", nargs=-1, metavar="[RUN] [-- COMMAND...]", shell_complete=run_names)
@setting_options(settings.LABELS, settings.RESOURCES, ENVIRONMENT, settings.FILES, settings.CODE, settings.HOMES)
def shell_command(**options: Any) -> int:
    """Open a shell on a node, or inside a run.

    Without RUN, submits a job with the project's files and environment, waits until it starts, and opens a terminal in
    it. The job ends with the terminal. Before the terminal is open, Ctrl-C cancels the job. If the connection is lost,
    `yurt shell RUN` returns to the job within five minutes. With COMMAND, runs it instead of a shell.

    With RUN, opens the shell inside a running run: on its node, in its folder, with its modules and variables but
    without its secrets. It shares the run's cores and memory.

    The exit code is that of the shell or of COMMAND. COMMAND gets standard input; it has a terminal if standard input
    and standard output are one. With --json, prints the result after the shell has ended; with COMMAND, only errors are
    JSON.
    """

    run, command = _split(options["words"])
    attended = sys.stdin.isatty() and sys.stdout.isatty()
    if not command and not attended:
        what = "standard output" if sys.stdin.isatty() else "standard input"
        raise UserError(
            f"cannot open a shell: {what} is not a terminal",
            code="usage",
            hint=f"run a command with `yurt shell {run or '--'} COMMAND`",
        )
    if run:
        _check_alone(run)
        return shell(run, command, terminal=attended)
    return _open(_request(options, command), terminal=attended)


def _open(request: Request, *, terminal: bool) -> int:
    from yurt.lifecycle.pending_text import Pending
    from yurt.model.result import Interrupted

    now = call.current()
    pending = Pending(quiet=now.quiet or now.json)
    try:
        with ExitStack() as submission:
            watch = submission.enter_context(watching())

            def on_wait(entry: Entry, warnings: Sequence[str]) -> None:
                submission.close()
                pending.show(entry, warnings)

            done = open_shell(
                request,
                context=now.context,
                terminal=terminal,
                on_wait=on_wait,
                on_open=pending.opened,
                on_stop=pending.stopping,
                watch=watch,
            )
    except Interrupted as error:
        pending.clear()
        _say(f"interrupted; {error.note}")
        return 130
    finally:
        pending.clear()
    if done.data.note and not now.json:
        _say(done.data.note)
    if now.json and not request.words:
        render.result(done, lambda: None)
    return done.exit_code


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal was closed
        print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)


def _split(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the run and the command; the first `--` is there twice if it follows the run."""
    given = list(words)
    if not given or given[0] == "--":
        return "", given[1:]
    run, rest = given[0], given[1:]
    if rest[:2] == ["--", "--"]:
        return run, rest[2:]
    doubled = next((at for at in range(len(rest) - 1) if rest[at] == rest[at + 1] == "--"), None)
    return run, rest if doubled is None else [*rest[:doubled], *rest[doubled + 1 :]]


def _check_alone(run: str) -> None:
    """Raise UserError if an option of a new allocation is given with RUN."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(str(parameter.name)) == ParameterSource.COMMANDLINE
        if given and parameter.expose_value and isinstance(parameter, click.Option):
            raise UserError(
                f"{parameter.opts[0]} needs a new job, and a shell in run {run} uses that of the run",
                code="usage",
                hint=f"leave out `{parameter.opts[0]}`, or run a command in a new job with `yurt shell -- {run}`",
            )


def _request(options: dict[str, Any], command: list[str]) -> Request:
    from yurt.lifecycle.plan.request import Request
    from yurt.lifecycle.run_request import flags

    return Request(
        words=command,
        session=True,
        flags=flags(options),
        name=options["name"],
        tags=options["tags"],
        note=options["note"],
        include=options["include"],
        exclude=options["exclude"],
        snapshot=not options["no_snapshot"],
    )
