"""`yurt home sync --watch`: repeats rounds, and starts one at once when a job waits. One process at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from yurt.config import paths
from yurt.errors import RefusedError, UserError, YurtError
from yurt.homes import config, gate, places, rounds
from yurt.homes.config import Homes
from yurt.homes.outcomes import Round
from yurt.model.progress import Watch, unwatched

LONGEST = 600.0
"""The longest pause between two rounds, in seconds, after rounds without changes."""


def repeat(
    only: Sequence[str], interval: float, on_round: Callable[[Round], None], *, watch: Watch = unwatched
) -> None:
    """Run a round after each pause, until the user interrupts; `on_round` gets each round.

    RefusedError: another process does this already.
    """
    with _alone():
        pause, known, homes = interval, set[str](), None
        while True:
            homes = homes_now(homes)
            _wait(homes, only, interval, pause, known)
            asked = _wanted().exists()
            _wanted().unlink(missing_ok=True)
            try:
                done = rounds.run(homes, only, watch=watch)
            except RefusedError:  # another sync of this machine is running; it may have begun before the request
                if asked:
                    time.sleep(1)
                    ask()
                continue
            # Jobs that still wait after a good round were submitted during it; those of a failed one are not news.
            known = _waiting(homes, only) if done.code else set()
            changed = any(each.transferred or each.released for each in done.outcomes)
            pause = interval if changed else min(pause * 2, max(LONGEST, interval))
            on_round(done)


def is_running() -> bool:
    """Return whether a process of this machine repeats rounds."""
    try:
        with _alone():
            return False
    except RefusedError:
        return True


def ask() -> None:
    """Let that process start a round at once. OSError if the data folder is not writable."""
    paths.write_private(_wanted(), b"")


def homes_now(last: Homes | None) -> Homes:
    """Return homes.yaml, which the user may change while rounds are repeated; the last valid one if it has faults."""
    try:
        homes = config.load()
    except UserError:
        if last is None:
            raise
        return last
    if homes is None:
        raise UserError("no homes are in sync yet", code="usage", hint="name contexts: `yurt home sync alpha beta`")
    return homes


def _wait(homes: Homes, only: Sequence[str], interval: float, pause: float, known: Set[str]) -> None:
    """Wait for the next round: until `pause` is over, another process asks for it, or another job waits."""
    until = time.monotonic() + pause
    look_at = time.monotonic() + interval
    while time.monotonic() < until and not _wanted().exists():
        time.sleep(min(0.5, max(0.0, until - time.monotonic())))
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + interval
            if _waiting(homes, only) - known:
                return


def _waiting(homes: Homes, only: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for place in places.all_places(homes):
        if not only or place.name in only:
            with suppress(YurtError):  # the next round says what is wrong
                found |= {f"{place.name} {job}" for job in gate.waiting_jobs(place)}
    return found


def _wanted() -> Path:
    return paths.data_home() / "homes.wanted"


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of the process that repeats rounds. RefusedError if another one has it."""
    import fcntl

    paths.make_private(paths.data_home())
    descriptor = os.open(paths.data_home() / "homes.watch", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                "another `yurt home sync --watch` is running", code="home-locked", hint="stop it with Ctrl-C first"
            ) from None
        yield
    finally:
        os.close(descriptor)
