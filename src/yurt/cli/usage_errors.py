"""Errors of click as errors of yurt: one sentence, and a hint that names the help of the command."""

from __future__ import annotations

import os
import sys

import click

from yurt.cli import app
from yurt.cli.option_types import param_name
from yurt.errors import UserError


def explained(error: Exception, *, as_json: bool) -> Exception | int:
    """Return an error for the user; an exit code if nothing is left to say. Errors of others are returned unchanged."""
    if isinstance(error, click.Abort):
        return 130
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and error.ctx is not None and not as_json:
        print(error.ctx.get_help(), file=sys.stderr)
        return 2
    return _usage(error) if isinstance(error, click.ClickException) else error


def _usage(error: click.ClickException) -> UserError:
    """Return a click error as one sentence, with a hint that names the help of the command."""
    if isinstance(error, click.BadParameter) and error.param is not None and error.param.name == "plain":
        value = os.environ.get("YURT_PLAIN", "")
        hint = "for words instead of bars and colours: `export YURT_PLAIN=1`; otherwise: `unset YURT_PLAIN`"
        return UserError(f"the variable YURT_PLAIN must be 1 or 0, but is '{value}'", code="usage", hint=hint)
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "yurt"
    return UserError(_sentence(error), code="usage", hint=f"see `{command} --help`")


def _sentence(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"unknown option '{error.option_name}'" + app.did_you_mean(error.possibilities or ())
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # its message is the help page
        return "missing command"
    text = " ".join(error.message.split()).rstrip(".")
    if text.lower() == "got unexpected extra argument ()":
        return "unexpected argument ''"
    if isinstance(error, click.MissingParameter):
        text = " ".join(error.format_message().split()).rstrip(".").replace(". Choose from: ", "; choose from ")
    elif isinstance(error, click.BadParameter) and error.param is not None:
        name = param_name(error.param)
        return f"{name} {text}" if text.startswith("must ") else f"{name}: {text}"
    return text[:1].lower() + text[1:]
