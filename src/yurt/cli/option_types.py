"""Option types for numbers and durations.

They replace IntRange and FloatRange of click, which print `[x>=1]` in help and `0 is not in the range x>=1` in errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from yurt.cli import values

if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    _ParamType = click.ParamType  # not generic in click 8.1


class Number(_ParamType):
    """A number that is not below `least`."""

    name = "number"

    def __init__(self, least: int | None = None, *, whole: bool = True) -> None:
        self.least = least
        self.whole = whole

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = values.Number(self.least, whole=self.whole).read(value)
        if number is None:
            kind = "an integer" if self.whole else "a number"
            bound = "" if self.least is None else f" of at least {self.least}"
            self.fail(f"must be {kind}{bound}, not '{value}'", param, ctx)
        return number


class Duration(_ParamType):
    """A duration in seconds, from 90s, 10m, 2h or a bare number of seconds, within `least` and `most` seconds.

    A wrong value is a UserError whose hint shows `example`.
    """

    name = "duration"

    def __init__(self, example: str, *, least: int = 0, most: int | None = None) -> None:
        self.example = example
        self.least = least
        self.most = most

    def convert(self, value: str | float, param: click.Parameter | None, _ctx: click.Context | None) -> float:
        from yurt.cli.render import span
        from yurt.errors import UserError

        seconds = _seconds(str(value))
        problem = ""
        if seconds is None:
            problem = f"'{value}' is not a duration"
        elif seconds < self.least or (self.most is not None and seconds > self.most):
            most = f" and at most {span(self.most)}" if self.most is not None else ""
            problem = f"must be at least {span(self.least)}{most}, not '{value}'"
        if seconds is None or problem:
            option = param_name(param) if param is not None else "duration"
            text = f"{option} {problem}" if problem.startswith("must") else f"{option}: {problem}"
            raise UserError(text, code="usage", hint=f"for example: `{option} {self.example}`")
        return seconds


def for_click(kind: values.Number | values.Choice | values.Duration) -> click.ParamType[Any]:
    """Return click's type for a kind of value."""
    if isinstance(kind, values.Number):
        return Number(kind.least, whole=kind.whole)
    if isinstance(kind, values.Choice):
        return click.Choice(kind.words)
    return Duration(kind.example, least=kind.least, most=kind.most)


def param_name(param: click.Parameter) -> str:
    """Return how a user calls a parameter: its first long flag, or an argument's metavar without brackets."""
    if isinstance(param, click.Option):
        return next((flag for flag in param.opts if flag.startswith("--")), param.opts[0])
    return (param.metavar or param.human_readable_name).strip("[].")


def _seconds(text: str) -> float | None:
    """Return seconds, or None if the text is not a duration. A bare number counts seconds, not minutes as in Slurm."""
    from yurt.model.resources import parse_seconds

    try:
        if text.isascii() and text.replace(".", "", 1).isdigit():
            return float(text)
        return float(parse_seconds(text))
    except ValueError:
        return None
