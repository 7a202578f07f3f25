"""Finds one set in the plan of a sweep without decoding the others: there may be 100,000."""

from __future__ import annotations

from typing import Any

import msgspec

KEY, BETWEEN = b'"sets":[', b"},{"


class OneSet(msgspec.Struct, frozen=True):
    """What a plan says about one task."""

    own: bytes
    """Its set, as JSON."""
    arguments: bool
    calls: bool


class _Rest(msgspec.Struct, frozen=True):
    """The part of a plan that is the same for all tasks."""

    arguments: bool = True
    calls: bool = False


def one_set(plan: bytes, number: int, count: int) -> OneSet | None:
    """Return one of the `count` sets of a plan; None if the text alone does not show where it is.

    It shows that if there are no other brackets than those of the sets, and as many of these as there are sets.
    """
    begin = plan.find(KEY) + len(KEY)
    end = plan.find(b"}]", begin)
    if plan.count(KEY) != 1 or end < 0 or plan[begin : begin + 1] != b"{":
        return None
    sets = plan[begin + 1 : end]
    if not sets.count(BETWEEN) == sets.count(b"{") == sets.count(b"}") == count - 1 or b"[" in sets or b"]" in sets:
        return None
    after = count - number
    own = sets.split(BETWEEN, number + 1)[number] if number < after else sets.rsplit(BETWEEN, after)[-after]
    try:
        rest = msgspec.json.decode(plan[:begin] + plan[end + 1 :], type=_Rest)
        msgspec.json.decode(b"{" + own + b"}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    return OneSet(b"{" + own + b"}", rest.arguments, rest.calls)
