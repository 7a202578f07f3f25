"""How long yurt waits before it believes something; every such time is here, and YURT_CLOCKS can change it.

    YURT_CLOCKS="settling=2 lease=12" yurt ps

Made for tests, which shorten what they would wait for and lengthen what a busy machine would break.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Annotated

import msgspec

from yurt.errors import UserError


class Clocks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds."""

    settling: float = 10.0
    """In which a job's own ending may still be on its way over a shared disk."""
    forgiving: float = 60.0
    """After which a job that left no trace at all is given up."""
    young: float = 60.0
    """A job the queue never showed, or only this soon after its submission, may have been lost by a crash."""
    resubmit: float = 5.0
    """After which a job that a site lost before its start is submitted again."""
    lease: Annotated[int, msgspec.Meta(ge=6)] = 60
    """A start of a run that may be started again shows every sixth of this that it lives."""
    grace: int = 10
    """Between the signal to stop and the one that kills, where no scheduler sees to it."""
    first_refresh: float = 0.5
    """Until `wait` looks for the second time; later looks are ever further apart."""
    last_refresh: float = 15.0
    """The longest time between two looks of `wait`."""


@cache
def clocks() -> Clocks:
    """The times in force. UserError if YURT_CLOCKS has others, or values that are no numbers."""
    return read(os.environ.get("YURT_CLOCKS", ""))


def read(text: str) -> Clocks:
    """The times that a text such as `settling=2 lease=12` changes."""
    pairs = dict(word.partition("=")[::2] for word in text.split())
    try:
        return msgspec.convert(pairs, Clocks, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join(Clocks.__struct_fields__)
        raise UserError(f"YURT_CLOCKS: {error}", code="usage", hint=f"the clocks are {known}") from None
