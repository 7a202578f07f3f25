"""Why a run waits or failed, for `show`: from what this machine has saved, without a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import YurtError
from yurt.model.run import FINAL
from yurt.store import Entry, Mirrored, Store

if TYPE_CHECKING:
    from yurt.lifecycle.causes.failed import Cause
    from yurt.lifecycle.causes.rules import Rule
    from yurt.model.pending import Pending


def cause(store: Store, entry: Entry, kept: Mirrored | None) -> Cause | None:
    """Return why a run failed, from what this machine has saved, and record it for tables."""
    if not entry.status.final or entry.status.state in ("completed", "cancelled"):
        return None
    from yurt.lifecycle.refresh import causes

    if not entry.status.cause:
        causes.record(store, [entry])
    try:
        return causes.explained(entry, kept, _rules())
    except YurtError:  # a rule of the user is too slow, which is an error only of `yurt why`
        from yurt.lifecycle.causes.rules import known

        return causes.explained(entry, kept, known())


def _rules() -> Sequence[Rule]:
    """Return all rules; without the user's if those are not valid, which is an error only of `yurt why`."""
    from yurt.lifecycle.causes.rules import known
    from yurt.lifecycle.refresh import causes

    try:
        return causes.all_rules()
    except YurtError:
        return known()


def pending(store: Store, entry: Entry) -> Pending | None:
    """Return what a run waits for, without a query."""
    if entry.status.state in ("running", *FINAL):  # saves the import
        return None
    from yurt.lifecycle.causes import pending as waits

    if entry.status.state not in waits.STATES:
        return None
    from yurt.lifecycle.awaited import awaited

    found = waits.pending(entry.run, entry.status, None, 0, after=awaited(store, entry.run))
    return msgspec.structs.replace(found, waited=None)  # it would differ between machines
