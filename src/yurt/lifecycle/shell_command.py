"""`yurt shell [OPTIONS] [RUN] [-- COMMAND…]`: a terminal or a command on a node, or inside a run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from yurt.cli import app, render
from yurt.cli.app import run_names, verb
from yurt.cli.dashes import WithDashes
from yurt.cli.progress import watching
from yurt.cli.settings import options as setting_options
from yurt.errors import UserError
from yurt.model import settings

if TYPE_CHECKING:
    from yurt.lifecycle.plan.request import Request
    from yurt.store import Entry

EXAMPLES = [
    "yurt shell --gpus 1 --time 1h",
    "yurt shell --context alpha --nodes 2 -- srun hostname",
    "yurt shell --gpus a100:1 -- python train.py --lr 0.1 < input.csv > output.csv",
    "yurt shell -",
    "yurt shell x7q4z nvidia-smi",
]

ENVIRONMENT = [row for row in settings.ENVIRONMENT if row.option != "secrets"]


@verb(
    cls=WithDashes,
    examples=EXAMPLES,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, metavar="[RUN] [-- COMMAND...]", type=click.UNPROCESSED, shell_complete=run_names)
@setting_options(settings.LABELS, settings.RESOURCES, ENVIRONMENT, settings.FILES, settings.CODE, settings.HOMES)
def shell(**options: Any) -> int:
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
    from yurt.lifecycle import shell as verbs

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
        return verbs.shell(run, command, terminal=attended)
    return _open(_request(options, command), terminal=attended)


def _open(request: Request, *, terminal: bool) -> int:
    from yurt.lifecycle import shell as verbs
    from yurt.lifecycle.pending_text import Pending
    from yurt.model.result import Interrupted

    now = app.current()
    pending = Pending(quiet=now.quiet or now.json)
    try:
        with ExitStack() as submission:
            watch = submission.enter_context(watching())

            def on_wait(entry: Entry, warnings: Sequence[str]) -> None:
                submission.close()
                pending.show(entry, warnings)

            done = verbs.open_shell(
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
