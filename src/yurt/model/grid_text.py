"""Parses the values of an axis: 0.1,0.01 or 1..5 or 0..1..0.25 or @file or a JSON list. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.model import params
from yurt.model.grid import LIMIT, Axis, GridError, axis, checked, zipped

if TYPE_CHECKING:
    from fractions import Fraction

Read = Callable[[str], str]
"""Returns the text of a file; raises OSError or UnicodeError if it cannot be read."""

_NUMBER = r"[-+]?\d{1,30}(?:\.\d{1,30})?(?:[eE][-+]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:\.\.({_NUMBER}))?", re.ASCII)
_BROKEN_RANGE = re.compile(rf"{_NUMBER}\.\..*|.*\.\.{_NUMBER}", re.ASCII | re.DOTALL)
"""A range with a number on at least one side. Other text with dots is not a range: ../data, a..b."""

_EMPTY = "''"

_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)


def pair(text: str, flag: str, example: str) -> tuple[str, str]:
    """Split key=rest, the argument of a flag. GridError if the '=' is missing or the key is invalid."""
    key, equals, rest = text.partition("=")
    if not equals:
        raise GridError(f"{flag} {text or _EMPTY} has no '='", f"for example: `{flag} {key or 'lr'}={example}`")
    try:
        params.check_key(key)
    except ValueError as error:
        raise GridError(f"{flag} {text}: {error}", f"for example: `{flag} lr={example}`") from None
    return key, rest


def column(text: str, read: Read) -> Sequence[Any]:
    """Parse the values of a key.

    GridError if that fails: its problem continues a sentence that starts with the key, and its hint is an example of
    valid values.
    """
    text = text.strip()
    if text.startswith("@"):
        return _of_file(text[1:], read)
    if text.startswith("["):
        return _of_json(text)
    if not text:
        raise GridError("has no values", "0.1,0.01")
    values: list[Any] = []
    for piece in map(str.strip, text.split(",")):
        if not piece:
            raise GridError("has an empty value between two commas or after the last one", '["a", ""]')
        found = _RANGE.fullmatch(piece)
        if found is None and _BROKEN_RANGE.fullmatch(piece):
            raise _broken_range(params.shown(piece))
        values += _steps(piece, found[1], found[2], found[3]) if found else [_typed(piece)]
    return _not_too_many(values)


def _broken_range(piece: str) -> GridError:
    text = msgspec.json.encode([piece]).decode()
    return GridError(f"has the range {piece}, but a range needs numbers; write {text} for text", "1..5")


def _typed(text: str) -> Any:
    """Return the value of a text; a number that JSON cannot represent stays text."""
    try:
        value = checked(params.typed(text))
    except (ValueError, RecursionError):
        value = text
    return _carried([value])[0]


def _carried(values: list[Any]) -> list[Any]:
    try:
        return [checked(value) for value in values]
    except ValueError as error:
        raise GridError(f"has a value that {error}") from None


def _of_json(text: str) -> Sequence[Any]:
    """Parse the values in ["a,b", 2]; also [1, 2], [3], which is two lists."""
    problem = ""
    for each in (text, f"[{text}]"):
        try:
            values = msgspec.json.decode(each, type=list[Any])
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            problem = problem or str(error)
        else:
            return _not_too_many(_carried(values))
    raise GridError(f"starts with '[' but is not a JSON list: {problem}", '["a,b", 2]')


def _of_file(name: str, read: Read) -> Sequence[Any]:
    if not name:
        raise GridError("has an '@' without a file name", "@values.txt")
    try:
        lines = [line.strip() for line in read(name).splitlines()]
    except (OSError, UnicodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "not UTF-8 text"
        raise GridError(f"names the file {name}, which cannot be read: {reason}", "@values.txt") from None
    values = [_typed(line) for line in lines if line and not line.startswith("#")]
    if not values:
        raise GridError(f"has no values: {name} contains only blank lines and comments", f"@{name}")
    return _not_too_many(values)


def _not_too_many(values: list[Any]) -> Sequence[Any]:
    if not values:
        raise GridError("has no values", "0.1,0.01")
    if len(values) > LIMIT:
        raise _too_many(len(values))
    return values


def _too_many(number: int) -> GridError:
    return GridError(f"has {number:,} values; the maximum is {LIMIT:,}")


def _steps(piece: str, first: str, last: str, step: str | None) -> Sequence[Any]:
    """Return the numbers of a range, both ends included; integers if all its parts are integers."""
    if all(_INTEGER.fullmatch(each) for each in (first, last, step or "1")):
        start, by = int(first), int(step or "1")
        count = _count(piece, start, int(last), by)
        numbers: Sequence[Any] = range(start, start + count * by, by)
    elif step is None:
        raise GridError(f"has the range {piece}, which needs a step", f"{piece}..0.1")
    else:
        from fractions import Fraction  # exact: three steps of 0.1 are 0.3

        begin, every = Fraction(first), Fraction(step)
        try:
            numbers = [float(begin + number * every) for number in range(_count(piece, begin, Fraction(last), every))]
        except OverflowError:
            numbers = [float("inf")]
    try:
        checked([numbers[0], numbers[-1]])
    except ValueError as error:
        raise GridError(f"has the range {piece} with a value that {error}") from None
    return numbers


def _count(piece: str, first: Fraction | int, last: Fraction | int, step: Fraction | int) -> int:
    ends = piece.split("..")[:2]
    if step == 0:
        raise GridError(f"has the range {piece}, whose step is 0", f"{ends[0]}..{ends[1]}..1")
    count = int((last - first) // step) + 1
    if count < 1:
        raise GridError(
            f"has the range {piece}, which is empty", f"{ends[1]}..{ends[0]}" + piece[len("..".join(ends)) :]
        )
    if count > LIMIT:
        raise _too_many(count)
    return count


def axes(columns: Mapping[str, Sequence[Any]], together: Mapping[str, Sequence[Any]]) -> list[Axis]:
    """Return the axes of a grid: one for all zipped keys, then one per key. GridError if zipped lengths differ."""
    return [*([zipped(together)] if together else []), *(axis(key, values) for key, values in columns.items())]
