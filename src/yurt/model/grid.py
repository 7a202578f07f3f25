"""Parameter sets of a sweep: the product of axes in a stable order; shuffled, limited, without duplicates. Pure.

The size of a grid is computed without expanding it; sets are made one by one on demand.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, product
from math import prod
from typing import Any

import msgspec

from yurt.model import params

LIMIT = 100_000
"""Maximum number of parameter sets in one sweep."""

SHOWN = 3
"""How many duplicate sets a warning names; it counts the others."""


class GridError(ValueError):
    """A sweep is invalid: the problem, and a hint what to type instead."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class Axis(msgspec.Struct, frozen=True):
    """One dimension of a grid: a row for each value of one key, or of several zipped keys; or rows of any keys."""

    label: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def keys(self) -> set[str]:
        return {key for row in self.rows for key in row}

    def without(self, keys: set[str]) -> Axis | None:
        """Return the axis without some keys; None if no keys remain."""
        if not self.keys & keys:
            return self
        rows = [{key: value for key, value in row.items() if key not in keys} for row in self.rows]
        return Axis(self.label, rows) if any(rows) else None


class Grid(msgspec.Struct, frozen=True):
    """The product of axes; the last one varies fastest. If two axes have the same key, the later one sets its value."""

    axes: Sequence[Axis]

    @property
    def size(self) -> int:
        return prod(len(axis.rows) for axis in self.axes)

    def at(self, index: int) -> dict[str, Any]:
        chosen: list[Mapping[str, Any]] = []
        for axis in reversed(self.axes):
            index, place = divmod(index, len(axis.rows))
            chosen.append(axis.rows[place])
        return _merged(reversed(chosen))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(_merged, product(*(axis.rows for axis in self.axes)))


def _merged(rows: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for row in rows:
        made.update(row)
    return made


class Sets:
    """The parameter sets of several grids in order, or a selection of them in the order selected.

    The constructor raises GridError if there are none or too many.
    """

    def __init__(self, grids: Sequence[Grid], chosen: Sequence[int] | None = None) -> None:
        sizes = [grid.size for grid in grids]
        if not sum(sizes):
            raise GridError("the grid is empty", "for example: `--grid lr=0.1,0.01`")
        if sum(sizes) > LIMIT:
            raise _too_many(grids)
        self.grids = grids
        self._starts = [0, *accumulate(sizes)]
        self._chosen = chosen

    def __len__(self) -> int:
        return self._starts[-1] if self._chosen is None else len(self._chosen)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"index {index} is out of range: there are {len(self)} parameter sets")
        return self._at(index if self._chosen is None else self._chosen[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._chosen is None:
            return chain.from_iterable(self.grids)
        return map(self._at, self._chosen)

    def _at(self, index: int) -> dict[str, Any]:
        which = bisect_right(self._starts, index) - 1
        return self.grids[which].at(index - self._starts[which])

    def choose(self, places: Sequence[int]) -> Sets:
        """Return a selection of these sets by index, in the given order."""
        chosen = self._chosen
        return Sets(self.grids, array("L", places if chosen is None else (chosen[place] for place in places)))


MOST_DIGITS, MOST_AXES = 30, 20
"""How much of the size of a sweep a message shows."""


def _too_many(grids: Sequence[Grid]) -> GridError:
    number = sum(grid.size for grid in grids)
    power = int((number.bit_length() - 1) * 0.30103)  # of 10; Python writes no number of more than 4300 digits
    written = f"{number:,}" if power < MOST_DIGITS else f"more than 10^{power}"
    largest = max(grids, key=lambda grid: grid.size)
    axes = [axis for axis in largest.axes if len(axis.rows) > 1]
    shown = [f"{axis.label} {len(axis.rows):,}" for axis in axes[:MOST_AXES]]
    sizes = " x ".join([*shown, *(["..."] if axes[MOST_AXES:] else [])])
    if len(grids) > 1:
        sizes = f"{len(grids)} grids, the largest {sizes}" if sizes else f"{len(grids)} grids"
    hint = "use fewer values, or submit several sweeps"
    return GridError(f"the sweep has {written} combinations ({sizes}); the maximum is {LIMIT:,}", hint)


def zipped(columns: Mapping[str, Sequence[Any]]) -> Axis:
    """Return one axis for several keys whose values vary together. GridError if their lengths differ."""
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        least, most = min(lengths, key=lambda key: lengths[key]), max(lengths, key=lambda key: lengths[key])
        raise GridError(
            f"zipped keys need the same number of values, but {most} has {lengths[most]} and {least} has "
            f"{lengths[least]}",
            "use the same number of values for each key, or use `--grid` for their product",
        )
    return Axis(
        "+".join(columns), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )


def axis(key: str, values: Sequence[Any]) -> Axis:
    """Return an axis of one key."""
    return Axis(key, [{key: value} for value in values])


def fixed(values: Mapping[str, Any]) -> Axis:
    """Return an axis of one row: values that all sets share."""
    return Axis("+".join(values), [values])


def unique(sets: Sets) -> tuple[Sets, list[str]]:
    """Remove duplicate sets and return a warning that names them. 1, 1.0 and true are different values."""
    if len(sets.grids) == 1 and not _may_repeat(sets.grids[0]):
        return sets, []
    times: dict[bytes, int] = {}
    places: list[int] = []
    for place, each in enumerate(sets):
        identity = identity_of(each)
        seen = times.get(identity, 0)
        if not seen:
            places.append(place)
        times[identity] = seen + 1
    if len(places) == len(sets):
        return sets, []
    repeated = [(sets[place], count) for place, count in zip(places, times.values(), strict=True) if count > 1]
    named = [f"{_described(each)} ({count} times)" for each, count in repeated[:SHOWN]]
    more = len(repeated) - len(named)
    examples = "; ".join([*named, *([f"and {more} more"] if more else [])])
    which = "1 parameter set is" if len(repeated) == 1 else f"{len(repeated)} parameter sets are"
    return sets.choose(places), [f"{which} given more than once and will run only once: {examples}"]


def _may_repeat(grid: Grid) -> bool:
    """Whether a grid can contain equal sets. A product of axes with distinct keys and distinct rows cannot."""
    keys: set[str] = set()
    for each in grid.axes:
        if keys & each.keys or len({identity_of(row) for row in each.rows}) < len(each.rows):
            return True
        keys |= each.keys
    return False


def identity_of(values: Mapping[str, Any]) -> bytes:
    """Return bytes that are equal for equal parameter sets, in any order of keys."""
    return msgspec.json.encode(values, order="sorted")


def _described(values: Mapping[str, Any]) -> str:
    """Return a parameter set as short text for a message."""
    text = " ".join(f"{key}={params.as_text(value)}" for key, value in values.items())
    return text if len(text) <= 80 else text[:79] + "…"


def shuffled(sets: Sets, seed: int) -> Sets:
    """Return all sets in a random order that depends only on the seed."""
    from random import Random

    places = list(range(len(sets)))
    Random(seed).shuffle(places)
    return sets.choose(places)


def limited(sets: Sets, limit: int) -> Sets:
    """Return the first `limit` sets. GridError if the limit is below 1."""
    if limit < 1:
        raise GridError(f"--limit {limit} leaves no parameter sets", "for example: `--limit 10`")
    return sets if limit >= len(sets) else sets.choose(range(limit))


def checked(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON represents it, with the same type.

    ValueError if JSON cannot represent it; the message continues a sentence that starts with the value's name.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if params.shown(value) != value:
            raise ValueError(f"is not UTF-8 text: {params.shown(value)}")
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("is a number with more than 64 bits; write it as quoted text")
        return value
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"is {value}, which JSON cannot represent; write it as quoted text, or use null")
        return value
    if depth > 20:
        raise ValueError("is nested too deeply")
    if isinstance(value, list | tuple):
        return [checked(each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"has the mapping key {key!r}, but keys must be text; quote it")
        return {key: checked(each, depth + 1) for key, each in value.items()}
    raise ValueError(f"has the type {type(value).__name__}; use a number, text, true, false, null, a list or a mapping")
