"""Finds one set in the plan of a sweep without decoding the others: there may be 100,000."""

from __future__ import annotations

from typing import Any

import msgspec

KEY, BETWEEN, END = b'"sets":[', b"},{", b'}],"arguments":'
"""Before, between and after the sets. A quotation mark inside a string follows a backslash, so KEY and END are keys."""

CHUNK = 1 << 14
"""How many bytes are searched at once."""


class OneSet(msgspec.Struct, frozen=True):
    """What a plan says about one task."""

    own: bytes
    """Its set, as JSON."""
    arguments: bool
    calls: bool


class Rest(msgspec.Struct, frozen=True):
    """The part of a plan that is the same for all tasks."""

    arguments: bool = True
    calls: bool = False


def one_set(plan: bytes, number: int, count: int) -> OneSet | None:
    """Return one of the `count` sets of a plan; None if the text alone does not show where it is.

    It shows that if the rest is valid without the sets, and the text between two sets is nowhere else.
    """
    begin, end = plan.find(KEY) + len(KEY), plan.rfind(END)
    if begin < len(KEY) or end < begin or plan[begin : begin + 1] != b"{":
        return None
    own = _item(plan, begin + 1, end, number, count)
    if own is None:
        return None
    try:
        rest = msgspec.json.decode(plan[:begin] + plan[end + 1 :], type=Rest)
        msgspec.json.decode(b"{" + own + b"}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    return OneSet(b"{" + own + b"}", rest.arguments, rest.calls)


def _item(text: bytes, begin: int, end: int, number: int, count: int) -> bytes | None:
    """Return one of `count` items between `begin` and `end`; None if there are more or fewer."""
    first, last = begin if number == 0 else None, end
    seen = 0
    for at in range(begin, end, CHUNK):
        stop = min(at + CHUNK + len(BETWEEN) - 1, end)  # what begins in this chunk, and no more
        here = text.count(BETWEEN, at, stop)
        for wanted in (number, number + 1):
            if seen < wanted <= seen + here:
                found = _place(text, at, stop, wanted - seen)
                if wanted == number:
                    first = found + len(BETWEEN)
                else:
                    last = found
        seen += here
    return text[first:last] if seen == count - 1 and first is not None else None


def _place(text: bytes, begin: int, end: int, nth: int) -> int:
    at = text.find(BETWEEN, begin, end)
    for _each in range(nth - 1):
        at = text.find(BETWEEN, at + len(BETWEEN), end)
    return at
