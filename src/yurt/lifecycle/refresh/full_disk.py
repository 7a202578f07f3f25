"""Refreshes while a command waits for runs, and stops the wait if the disk of this machine is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yurt.errors import HereIsFullError
from yurt.store import Store

if TYPE_CHECKING:
    from yurt.lifecycle.refresh.refresh import Refreshed


def checked(store: Store, runs: Sequence[str], refresh: Callable[[], Refreshed]) -> Refreshed:
    """Refresh. HereIsFullError if that failed because the index cannot be written: the wait would never end.

    The runs are not lost; the error tells how to continue without submitting them again.
    """
    try:
        found = refresh()
    except HereIsFullError:
        raise _full(runs) from None
    stopped = [each.stopped for each in found.advanced.values() if each.stopped is not None]
    errors = [*found.failed.values(), *stopped]
    if any(isinstance(error, HereIsFullError) for error in errors) or (errors and store.disk_is_full()):
        raise _full(runs)
    return found


def _full(runs: Sequence[str]) -> HereIsFullError:
    names = " ".join(runs[:3])
    what = f"run {names}" if len(runs) == 1 else f"{len(runs)} runs"
    return HereIsFullError(
        f"cannot save the state of {what}: the disk of this machine is full",
        code="disk-full",
        hint=f"free some space, then run `yurt wait {names}`",
    )
