"""Parameter sets of a sweep: the product of axes in a stable order, shuffled, shortened, each set once. Pure.

A grid is never expanded to learn its size; sets are made one by one, as somebody asks for them.
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
"""Parameter sets in one sweep."""

SHOWN = 3
"""Repeated sets that a warning names; it counts the others."""


class GridError(ValueError):
    """What cannot make a sweep, in one sentence, and what to type in its place."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


class Axis(msgspec.Struct, frozen=True):
    """What varies together: a row for each value of one key, or of several that are zipped; or rows of any keys."""

    label: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def keys(self) -> set[str]:
        return {key for row in self.rows for key in row}

    def without(self, keys: set[str]) -> Axis | None:
        """The axis with some keys left out; None where nothing is left of it."""
        if not self.keys & keys:
            return self
        rows = [{key: value for key, value in row.items() if key not in keys} for row in self.rows]
        return Axis(self.label, rows) if any(rows) else None


class Grid(msgspec.Struct, frozen=True):
    """The product of axes, the last of them varying fastest. Where two have a key, the later one gives its value."""

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
    """The parameter sets of grids, one grid after another; or of these the chosen ones, in the order they are chosen.

    GridError where there are none or too many, before one is made.
    """

    def __init__(self, grids: Sequence[Grid], chosen: Sequence[int] | None = None) -> None:
        sizes = [grid.size for grid in grids]
        if not sum(sizes):
            raise GridError("the grid is empty: there is no parameter set in it", "--grid lr=0.1,0.01")
        if sum(sizes) > LIMIT:
            raise _too_many(grids)
        self.grids = grids
        self._starts = [0, *accumulate(sizes)]
        self._chosen = chosen

    def __len__(self) -> int:
        return self._starts[-1] if self._chosen is None else len(self._chosen)

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} parameter sets, and none has the index {index}")
        return self._at(index if self._chosen is None else self._chosen[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._chosen is None:
            return chain.from_iterable(self.grids)
        return map(self._at, self._chosen)

    def _at(self, index: int) -> dict[str, Any]:
        which = bisect_right(self._starts, index) - 1
        return self.grids[which].at(index - self._starts[which])

    def choose(self, places: Sequence[int]) -> Sets:
        """Some of these sets, in the order of their places here."""
        chosen = self._chosen
        return Sets(self.grids, array("L", places if chosen is None else (chosen[place] for place in places)))


def _too_many(grids: Sequence[Grid]) -> GridError:
    number = sum(grid.size for grid in grids)
    largest = max(grids, key=lambda grid: grid.size)
    axes = [axis for axis in largest.axes if len(axis.rows) > 1]
    told = " x ".join(f"{axis.label} {len(axis.rows):,}" for axis in axes)
    if len(grids) > 1:
        told = f"{len(grids)} grids, the largest {told}" if told else f"{len(grids)} grids"
    hint = "give fewer values, or make several sweeps"
    return GridError(f"these are {number:,} combinations ({told}), and a sweep has at most {LIMIT:,}", hint)


def zipped(columns: Mapping[str, Sequence[Any]]) -> Axis:
    """One axis of several keys whose values go together. GridError where there are more of one than of another."""
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        least, most = min(lengths, key=lambda key: lengths[key]), max(lengths, key=lambda key: lengths[key])
        raise GridError(
            f"{most} has {lengths[most]} values and {least} has {lengths[least]}, and zipped keys go one with one",
            "give each of them as many values, or --grid for their product",
        )
    return Axis(
        "+".join(columns), [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )


def axis(key: str, values: Sequence[Any]) -> Axis:
    """An axis of one key."""
    return Axis(key, [{key: value} for value in values])


def fixed(values: Mapping[str, Any]) -> Axis:
    """What all sets have: an axis of one row."""
    return Axis("+".join(values), [values])


def unique(sets: Sets) -> tuple[Sets, list[str]]:
    """Every set once, by what its values are: 1, 1.0 and true are three. And a warning that names those that repeat."""
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
    named = [f"{said(each)} ({count} times)" for each, count in repeated[:SHOWN]]
    more = len(repeated) - len(named)
    told = "; ".join([*named, *([f"and {more} more"] if more else [])])
    which = "1 parameter set stands" if len(repeated) == 1 else f"{len(repeated)} parameter sets stand"
    return sets.choose(places), [f"{which} more than once, to be run once: {told}"]


def _may_repeat(grid: Grid) -> bool:
    """Whether two sets of a grid can be equal: a product of axes without repeats, each with its own keys, has none."""
    keys: set[str] = set()
    for each in grid.axes:
        if keys & each.keys or len({identity_of(row) for row in each.rows}) < len(each.rows):
            return True
        keys |= each.keys
    return False


def identity_of(values: Mapping[str, Any]) -> bytes:
    """Equal for equal parameter sets, whatever the order of their keys."""
    return msgspec.json.encode(values, order="sorted")


def said(values: Mapping[str, Any]) -> str:
    """A parameter set in a sentence."""
    text = " ".join(f"{key}={params.as_text(value)}" for key, value in values.items())
    return text if len(text) <= 80 else text[:79] + "…"


def shuffled(sets: Sets, seed: int) -> Sets:
    """All of them in another order, the same one for the same seed."""
    from random import Random

    places = list(range(len(sets)))
    Random(seed).shuffle(places)
    return sets.choose(places)


def limited(sets: Sets, limit: int) -> Sets:
    """The first of them. GridError where that would be none."""
    if limit < 1:
        raise GridError(f"--limit {limit} would leave no parameter set", "--limit 10")
    return sets if limit >= len(sets) else sets.choose(range(limit))


def checked(value: Any, depth: int = 0) -> Any:
    """A value as JSON carries it, of the same type. ValueError goes on from the name of the value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if params.shown(value) != value:
            raise ValueError(f"is no UTF-8 text: {params.shown(value)}")
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("is a number of more than 64 bits; write it as text, in quotes")
        return value
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"is {value}, which JSON cannot carry; write it as text, in quotes, or use null")
        return value
    if depth > 20:
        raise ValueError("nests too deeply")
    if isinstance(value, list | tuple):
        return [checked(each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"has the key {key!r} in a mapping, and keys are texts; write it in quotes")
        return {key: checked(each, depth + 1) for key, each in value.items()}
    raise ValueError(
        f"is of the type {type(value).__name__}, and parameters are numbers, texts, true, false, null, lists"
    )
