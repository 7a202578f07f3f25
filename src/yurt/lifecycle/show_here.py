"""What this machine has recorded about a run, for `show`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import YurtError
from yurt.model import layout
from yurt.model.pending import Awaited
from yurt.model.run import FINAL, Run
from yurt.model.usage import Usage
from yurt.model.usage_samples import UsageCurve
from yurt.model.usage_samples import curve as of_samples
from yurt.store import Entry, Mirrored, Store
from yurt.store.tracked import Tracked

if TYPE_CHECKING:
    from yurt.lifecycle.causes.failed import Cause
    from yurt.lifecycle.causes.rules import Rule
    from yurt.model.pending import Pending


def awaited(store: Store, run: Run) -> list[Awaited]:
    """Return the runs that a run depends on and that have not completed."""
    found = [(after, store.get(after.run)) for after in run.after]
    every = [
        Awaited(run=after.run, state=entry.status.state if entry is not None else None, ended=after.ended)
        for after, entry in found
    ]
    return [each for each in every if each.state != "completed"]


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

    found = waits.pending(entry.run, entry.status, None, 0, after=awaited(store, entry.run))
    return msgspec.structs.replace(found, waited=None)  # it would differ between machines


def usage(entry: Entry, read: bytes | None = None) -> Usage | None:
    """Return what a run used; of a running one, according to the samples just `read`, or that came with its metrics."""
    if entry.status.final or entry.status.state != "running":
        return entry.status.usage
    from yurt.model.usage_samples import usage as of_samples

    if read is None:
        from yurt.tracking.last import samples

        read = samples(entry)
    return of_samples(read)


def curve(entry: Entry, *, ask: bool) -> tuple[UsageCurve | None, list[str]]:
    """Return what a run used over time, and warnings. `ask`: query its site. UnreachableError: it is only there."""
    from yurt.tracking.last import samples

    text, warnings = samples(entry), list[str]()
    if ask and entry.run.folder and (not text or entry.status.final):
        from yurt.contexts import connect

        try:
            text = connect.responding_backend(entry.run.context).files.read(entry.run.folder, layout.USAGE) or text
        except YurtError as error:
            if not text:
                raise
            warnings = [error.message]
    return of_samples(text), warnings


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine has recorded about a run, beyond the data that all machines share."""

    submitted: float | None
    refreshed_at: float | None
    """When its site was last queried."""
    folder_seen_at: float | None
    """When its folder was last inspected."""
    removed_at: float | None
    """When `prune` removed its folder from its site."""
    copies: list[str]
    """Local folders with its fetched results."""
    kept: Mirrored | None
    tracked: Tracked | None
    """When and where it was sent to MLflow; None if it is not tracked."""


def here(store: Store, entry: Entry, *, folder_seen_at: float | None = None, kept: Mirrored | None = None) -> Here:
    """Return what this machine has recorded. `kept`: what it has saved of the run."""
    run = entry.run.id
    return Here(
        submitted=entry.status.submitted,
        refreshed_at=store.refreshed_at(entry.run.context),
        folder_seen_at=folder_seen_at,
        removed_at=store.gone_at(run),
        copies=[_path(copy.target) for copy in store.copies(run) if os.path.isdir(copy.target)],
        kept=kept,
        tracked=store.tracked(entry.run.sweep or run),
    )


def _path(path: bytes) -> str:
    return path.decode(errors="backslashreplace")
