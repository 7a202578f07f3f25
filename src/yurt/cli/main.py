"""The command `yurt`: the table of verbs, the one `except`, the one exit."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from yurt import __version__
from yurt.cli.frame import Group
from yurt.errors import UserError, YurtError

VERBS = {
    "context": ("yurt.cli.context:context", "Places to run: a cluster, Kubernetes, this machine."),
    "login": ("yurt.cli.login:login", "Open the connection to a site; the only verb that may ask you something."),
    "lab": ("yurt.cli.lab:lab", "Two real Slurm clusters on this machine: to try, to teach, to test."),
    "completion": ("yurt.cli.completion:completion", "Completion of commands in bash, zsh or fish."),
}


@click.group(
    cls=Group,
    lazy=VERBS,
    examples=["yurt lab up", "yurt lab status --json"],
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
    try:
        code = root.main(arguments, prog_name="yurt", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:  # the reader of our output went away, which is its right
        sys.stderr.close()
        return 141
    except Exception as error:
        return _fail(error, arguments)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _fail(error: Exception, arguments: list[str]) -> int:
    from yurt.cli import render

    as_json = "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)
    if isinstance(error, click.Abort):
        return 130
    if isinstance(error, click.ClickException):
        error = _usage(error)
    if not isinstance(error, YurtError):
        error = render.as_bug(error, arguments)
    render.error(error, as_json=as_json)
    return error.exit_code


def _usage(error: click.ClickException) -> UserError:
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "yurt"
    text = " ".join(error.format_message().split()).rstrip(".")
    return UserError(text[:1].lower() + text[1:], code="usage", hint=f"{where} --help")
