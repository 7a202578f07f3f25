"""Parameters from Python: those of one run, and the sets of a sweep."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from yurt.errors import UserError
from yurt.model.grid import Axis, Grid, GridError, Sets, axis, checked, fixed, unique, zipped


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as JSON has them; numbers of numpy and the like are numbers. UserError: one is something else."""
    found = {}
    for key, value in values.items():
        try:
            found[key] = checked(_number(value))
        except ValueError as error:
            raise UserError(f"the parameter '{key}' {error}", code="usage") from None
    return found


def _number(value: Any) -> Any:
    """A scalar of numpy, torch and the like as Python has it."""
    if isinstance(value, bool | int | float | str | list | tuple | Mapping) or value is None:
        return value
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", 1) == 0 else value


def sets_of(
    params: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]] | None,
    together: Mapping[str, Sequence[Any]] | None,
    sets: Sequence[Mapping[str, Any]] | None,
) -> list[dict[str, Any]] | None:
    """The sets of a sweep, each once; None if it is one run."""
    if grid is None and together is None and sets is None:
        return None
    try:
        axes: list[Axis] = [fixed(params)] if params else []
        if sets is not None:
            axes.append(Axis("sets", [plain(each) for each in sets]))
        if together:
            axes.append(zipped({key: _column(key, values) for key, values in together.items()}))
        axes += [axis(key, _column(key, values)) for key, values in (grid or {}).items()]
        found, repeated = unique(Sets([Grid(axes)]))
    except GridError as error:
        raise UserError(error.problem, code="usage", hint='grid={"lr": [0.1, 0.01]}') from None
    for text in repeated:
        warnings.warn(text, stacklevel=3)
    return list(found)


def _column(key: str, values: Sequence[Any]) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise UserError(f"the values of '{key}' are to be a list", code="usage", hint='grid={"lr": [0.1, 0.01]}')
    return [plain({key: value})[key] for value in values]
