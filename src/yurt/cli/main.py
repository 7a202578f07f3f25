"""The command `yurt`: the table of verbs, the one `except`, the one exit."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

import click

from yurt import __version__
from yurt.cli.app import Group
from yurt.errors import RefusedError, UserError, YurtError

VERBS = {
    "run": ("yurt.cli.run:run", "Run a script or a command, with the code as it is on disk now."),
    "ps": ("yurt.cli.ps:ps", "How runs stand, the newest first."),
    "show": ("yurt.cli.show:show", "Everything known of a run."),
    "logs": ("yurt.cli.logs:logs", "What runs wrote."),
    "wait": ("yurt.cli.wait:wait", "Wait until runs have ended."),
    "cancel": ("yurt.cli.cancel:cancel", "End runs."),
    "shell": ("yurt.cli.shell:shell", "A terminal inside a running run."),
    "retry": ("yurt.cli.retry:retry", "Run ended runs once more."),
    "fetch": ("yurt.cli.fetch:fetch", "Bring home what runs wrote."),
    "cluster": ("yurt.cli.cluster:cluster", "What is known of a site, and which nodes are left alone."),
    "prune": ("yurt.cli.prune:prune", "Remove runs that have ended from their sites."),
    "diff": ("yurt.cli.diff:diff", "What differs between two runs."),
    "import": ("yurt.cli.import_:import_", "Make the runs on a context known here, whoever made them."),
    "context": ("yurt.cli.context:context", "Places to run: a cluster, Kubernetes, this machine."),
    "login": ("yurt.cli.login:login", "Open the connection to a site; the only verb that may ask you something."),
    "secret": ("yurt.cli.secret:secret", "Values that only runs get to see, kept in the system's keyring."),
    "agent": ("yurt.cli.agent:agent", "Move on whatever waits."),
    "lab": ("yurt.cli.lab:lab", "Two real Slurm clusters on this machine: to try, to teach, to test."),
    "completion": ("yurt.cli.completion:completion", "Completion of commands in bash, zsh or fish."),
}


@click.group(
    cls=Group,
    lazy=VERBS,
    examples=["yurt run train.py -- --lr 0.1", "yurt ps", "yurt lab up"],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="yurt %(version)s")
def root() -> None:
    """Take a research project from your laptop to any cluster, and bring the results home."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run one call of yurt and leave with its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    sys.exit(run(arguments))


def run(arguments: list[str]) -> int:
    """Run one call of yurt. Every error ends here, as a message and an exit code."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        code = _call(arguments)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as left:  # --help and --version
        return left.exit_code
    except BrokenPipeError:  # the reader of our output went away, which is its right
        _write_no_more()
        return 141
    except Exception as error:
        return _fail(error, arguments)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _call(arguments: list[str]) -> object:
    """What the verb returns. Not through click's own `main`, which has exit codes of its own for some errors."""
    if "_YURT_COMPLETE" in os.environ:
        root.main(arguments, prog_name="yurt")
    with root.make_context("yurt", [*arguments]) as context:  # click empties the list it is given
        return root.invoke(context)


def _write_no_more() -> None:
    """What is still in the buffer of standard output cannot be written, and Python must not try at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, arguments: list[str]) -> int:
    from yurt.cli import render

    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if isinstance(error, click.Abort):
        return 130
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None and not as_json:
        print(error.ctx.get_help(), file=sys.stderr)
        return 2
    if isinstance(error, click.ClickException):
        error = _usage(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF) and not error.filename:
        _write_no_more()
        error = RefusedError(f"the output could not be written: {error.strerror}", code="output-failed")
    if not isinstance(error, YurtError):
        error = render.as_bug(error, arguments)
    with contextlib.suppress(OSError):  # not even the error can be said
        render.error(error, as_json=as_json)
        sys.stdout.flush()
    return error.exit_code


def _usage(error: click.ClickException) -> UserError:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "yurt"
    text = " ".join(error.format_message().split()).rstrip(".")
    return UserError(text[:1].lower() + text[1:], code="usage", hint=f"{where} --help")
