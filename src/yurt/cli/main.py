"""The command `yurt`: the table of verbs, and the only place that catches every error and sets the exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

import click

from yurt import __version__
from yurt.cli import app
from yurt.cli.app import Group
from yurt.cli.option_types import param_name
from yurt.errors import RefusedError, UserError, YurtError, here_is_full

VERBS = {
    "run": ("yurt.cli.run:run", "Run a script or a command on a context."),
    "ps": ("yurt.cli.ps:ps", "List runs, newest first."),
    "show": ("yurt.cli.show:show", "Show a run in detail."),
    "why": ("yurt.cli.why:why", "Explain why a run is pending or failed, and what to do."),
    "logs": ("yurt.cli.logs:logs", "Show the output of runs."),
    "metrics": ("yurt.cli.metrics:metrics", "Show the metrics of runs, also while they run."),
    "tensorboard": ("yurt.cli.tensorboard:tensorboard", "Show the curves of runs in TensorBoard."),
    "wait": ("yurt.cli.wait:wait", "Wait until runs have finished."),
    "cancel": ("yurt.cli.cancel:cancel", "Cancel runs."),
    "hold": ("yurt.cli.hold:hold", "Keep queued runs from starting."),
    "release": ("yurt.cli.hold:release", "Let held runs start."),
    "shell": ("yurt.cli.shell:shell", "Open a shell on a node, or inside a run."),
    "forward": ("yurt.cli.forward:forward", "Reach a program that listens on the node of a run."),
    "serve": ("yurt.cli.serve:serve", "Run Jupyter or anything that listens in a job."),
    "dev": ("yurt.cli.dev:dev", "Work on a node of your own, with a workspace that is backed up."),
    "home": ("yurt.cli.home:home", "Keep your homes on several sites in sync."),
    "retry": ("yurt.cli.retry:retry", "Run finished runs again."),
    "fetch": ("yurt.cli.fetch:fetch", "Download the results of runs."),
    "wandb": ("yurt.cli.wandb:wandb", "Upload runs of W&B that were logged without internet."),
    "mlflow": ("yurt.cli.mlflow:mlflow", "Show runs in MLflow, or send them to your MLflow server."),
    "cluster": ("yurt.cli.cluster:cluster", "Show what is free on sites, the queue and maintenance, now."),
    "where": ("yurt.cli.where:where", "Show where a run would start first."),
    "storage": ("yurt.cli.storage:storage", "Show storage tiers, and keep what would expire."),
    "data": ("yurt.cli.data:data", "Copy files to and from contexts, list and remove them."),
    "prune": ("yurt.cli.prune:prune", "Remove finished runs and unused environments from their sites."),
    "diff": ("yurt.cli.diff:diff", "Show the differences between two runs."),
    "import": ("yurt.cli.import_:import_", "Import the runs on a context into the local index."),
    "env": ("yurt.cli.env:env", "Build and inspect environments on clusters."),
    "context": ("yurt.cli.context:context", "Manage contexts."),
    "login": ("yurt.cli.login:login", "Log in to sites and keep the connections open."),
    "doctor": ("yurt.cli.doctor:doctor", "Check this machine and your contexts for problems."),
    "secret": ("yurt.cli.secret:secret", "Manage secrets in the system keyring."),
    "agent": ("yurt.cli.agent:agent", "Submit saved runs and refresh states."),
    "race": ("yurt.cli.race:race", "Release a race whose winner cannot be reached."),
    "lab": ("yurt.cli.lab:lab", "Manage two real Slurm clusters on this machine."),
    "completion": ("yurt.cli.completion:completion", "Print a completion script for a shell."),
}


@click.group(
    cls=Group,
    lazy=VERBS,
    examples=["yurt run train.py -- --lr 0.1", "yurt ps", "yurt lab up"],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="yurt %(version)s")
def root() -> None:
    """Run research projects on Slurm clusters and fetch the results."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one yurt command and exit with its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    leave(run(arguments))


def leave(code: int) -> NoReturn:
    """Exit, without the time that Python takes to free every object: a tenth of a short verb."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one yurt command and return its exit code. Errors are printed, never raised."""
    _open_closed_streams()
    try:
        code = _call(arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:  # --help and --version
        return done.exit_code
    except BrokenPipeError:  # the reader of stdout exited, as `head` does
        _discard_stdout()
        return 141
    except Exception as error:
        return _fail(error, arguments)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that the caller closed. Files that yurt opens would take their numbers."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _call(arguments: list[str]) -> object:
    """Return what the verb returns. Does not use click's `main`, which sets its own exit codes for some errors."""
    if "_YURT_COMPLETE" in os.environ:
        root.main(arguments, prog_name="yurt")
    with root.make_context("yurt", [*arguments]) as context:  # click empties the list
        return root.invoke(context)


def _discard_stdout() -> None:
    """Redirect stdout to /dev/null. Otherwise Python fails at exit when it flushes the buffer."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, arguments: list[str]) -> int:
    from yurt.cli import render

    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = "--json" in options
    if isinstance(error, click.Abort):
        return 130
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None and not as_json:
        print(error.ctx.get_help(), file=sys.stderr)
        return 2
    if isinstance(error, click.ClickException):
        error = _usage(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF) and not error.filename:
        _discard_stdout()
        error = RefusedError(f"cannot write the output: {error.strerror}", code="output-failed")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename:
        error = here_is_full(error.filename, error.strerror or "", hint="free some space, then run the command again")
    if not isinstance(error, YurtError):
        error = render.as_bug(error, arguments)
    with contextlib.suppress(OSError):  # the error cannot be printed either
        render.error(error, as_json=as_json, plain="--plain" in options or bool(os.environ.get("YURT_PLAIN")))
        sys.stdout.flush()
    return error.exit_code


def _usage(error: click.ClickException) -> UserError:
    """Return a click error as one sentence, with a hint that names the help of the command."""
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "yurt"
    return UserError(_sentence(error), code="usage", hint=f"see `{command} --help`")


def _sentence(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"unknown option '{error.option_name}'" + app.did_you_mean(error.possibilities or ())
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help page
        return "missing command"
    text = " ".join(error.message.split()).rstrip(".")
    if isinstance(error, click.MissingParameter):
        text = " ".join(error.format_message().split()).rstrip(".").replace(". Choose from: ", "; choose from ")
    elif isinstance(error, click.BadParameter) and error.param is not None:
        name = param_name(error.param)
        return f"{name} {text}" if text.startswith("must ") else f"{name}: {text}"
    return text[:1].lower() + text[1:]
