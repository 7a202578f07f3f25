"""Options of a command, generated from rows of the settings table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from yurt.cli import completers, declare
from yurt.cli.values import Number
from yurt.model.settings_row import Row

COMPLETERS: dict[str, Callable[..., Any]] = {
    "partition": completers.partitions,
    "venv": completers.folders,
    "requirements": completers.files,
    "container": completers.files,
}

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def options(*groups: Sequence[Row]) -> Callable[[_Decorated], _Decorated]:
    """Return a decorator that adds an option for each row, in the order of the rows."""

    def decorate(function: _Decorated) -> _Decorated:
        for row in reversed([row for group in groups for row in group]):  # click lists the topmost decorator first
            function = _option(row)(function)
        return function

    return decorate


def _option(row: Row) -> Callable[[_Decorated], _Decorated]:
    words = row.cli.split()
    flags = [word for word in words if word.startswith("-")]
    if row.form == "flag":
        return declare.option(*flags, is_flag=True, default=None if row.key else False, help=row.help)
    more: dict[str, Any] = {}
    if row.form in ("list", "mapping", "options"):
        more["multiple"] = True
    elif row.form == "number":
        more["type"] = Number(row.least)
    elif row.form == "text" and not row.key and not row.sbatch:
        more["default"] = ""
    complete = COMPLETERS.get(row.option)
    if complete is not None:
        more["shell_complete"] = complete
    return declare.option(*flags, row.option, metavar=words[-1], help=row.help, **more)
