"""The timeouts and intervals that YURT_CLOCKS can change:

    YURT_CLOCKS="settling=2 lease=12" yurt ps

Intended for tests, which shorten waits and lengthen timeouts that a busy machine would exceed. Other times
are constants beside the code that they limit; how often yurt polls is in lifecycle/refresh/poll_interval.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Annotated

import msgspec

from yurt.errors import UserError, one_of


class Clocks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All values are seconds."""

    settling: float = 10.0
    """How long a job's exit.json may take to become visible on a shared file system."""
    forgiving: float = 60.0
    """After this time a job that left no trace counts as lost."""
    young: float = 60.0
    """A job that the queue still lists this long after its submission cannot be lost in a controller crash any more."""
    resubmit: float = 5.0
    """After this time a job that the site lost before its start is submitted again."""
    skew: float = 30.0
    """How much the clocks of the login node, the controller and this machine may differ."""
    lease: Annotated[int, msgspec.Meta(ge=6)] = 60
    """A start of a restartable run renews its heartbeat every sixth of this time."""
    grace: int = 10
    """Time between SIGTERM and SIGKILL if no scheduler enforces it."""
    profile: float = 20.0
    """How long a job waits for the profile of the login shell."""
    first_session: int = 120
    """How long the job of `yurt shell` waits for its first session."""
    next_session: int = 300
    """How long the job of `yurt shell` waits for another session after one whose connection was lost."""
    first_refresh: float = 0.5
    """Time until the second refresh of `wait`; the interval grows from there."""
    last_refresh: float = 15.0
    """The longest interval between two refreshes of `wait`."""
    slow: float = 3.0
    """After this time without a response, yurt prints which site it waits for."""
    silent: float = 15.0
    """After this time without a response, yurt stops waiting for a site."""
    rest: float = 60.0
    """For this time, loops and commands about several sites do not wait again for a site that did not respond."""
    again: float = 3.0
    """How long a command about one site waits for it during that time."""
    locked: float = 30.0
    """How long yurt waits for another program that has locked the index."""
    overtake: float = 2.0
    """How long a new run waits for earlier runs that another yurt process is submitting."""
    service: float = 60.0
    """Time between two queries whether a service on a cluster has ended."""
    notice: float = 600.0
    """How long before its time limit yurt announces the end of a service."""
    share: float = 3.0
    """How long a command such as `ps` continues the interrupted upload of a saved run."""


@cache
def clocks() -> Clocks:
    """Return the values in effect. UserError if YURT_CLOCKS contains an unknown name or an invalid number."""
    return read(os.environ.get("YURT_CLOCKS", ""))


def read(text: str) -> Clocks:
    """Parse a text such as `settling=2 lease=12`; other values keep their defaults."""
    pairs = dict(word.partition("=")[::2] for word in text.split())
    if not pairs:
        return Clocks()  # msgspec takes long to prepare a conversion
    try:
        return msgspec.convert(pairs, Clocks, strict=False)
    except msgspec.ValidationError as error:
        hint = f"use {one_of(Clocks.__struct_fields__)}, for example: `YURT_CLOCKS='settling=2'`"
        raise UserError(f"invalid YURT_CLOCKS: {error}", code="usage", hint=hint) from None


_end: ContextVar[float] = ContextVar("end", default=float("inf"))


@contextmanager
def ending_by(end: float | None) -> Iterator[None]:
    """Wait for sites at most until this time of the monotonic clock, while the block runs; None: without a limit."""
    token = _end.set(min(_end.get(), float("inf") if end is None else end))
    try:
        yield
    finally:
        _end.reset(token)


def within(seconds: float) -> float:
    """Return how long to wait for a site: so many seconds, or until the end that `ending_by` has set."""
    return max(0.1, min(seconds, _end.get() - time.monotonic()))
