"""Reads the parameters of a run and the parameter sets of a sweep from Python values."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from yurt.errors import UserError
from yurt.model.grid import Axis, Grid, GridError, Sets, axis, checked, fixed, unique, zipped


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON types; NumPy and similar scalars become numbers. UserError: a value is not a JSON type."""
    found = {}
    for key, value in values.items():
        try:
            found[key] = checked(_number(value))
        except ValueError as error:
            raise UserError(f"parameter '{key}' {error}", code="usage") from None
    return found


def _number(value: Any) -> Any:
    """Convert a NumPy, PyTorch or similar scalar to a Python number."""
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
    """Return the parameter sets of a sweep without duplicates; None if there is no grid, zip or set."""
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
        hint = error.hint if "--" not in error.hint else 'pass `grid={"lr": [0.1, 0.01]}`'  # not the command line's
        raise UserError(error.problem, code="usage", hint=hint) from None
    for text in repeated:
        warnings.warn(text, stacklevel=3)
    return list(found)


def _column(key: str, values: Sequence[Any]) -> list[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise UserError(
            f"the values of '{key}' must be a list, not {type(values).__name__}",
            code="usage",
            hint=f"pass `grid={{{key!r}: [0.1, 0.01]}}`",
        )
    return [plain({key: value})[key] for value in values]
