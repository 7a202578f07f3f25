"""Jobs that wait for a home sync: the functions for the site, which jobs wait, and why they still do."""

from __future__ import annotations

import msgspec

from yurt.homes import deletions, ledger, scripts
from yurt.homes.outcomes import Outcome, shown
from yurt.homes.places import Place
from yurt.model.run import Run, Status
from yurt.model.state import WAITS_FOR_SYNC


def waiting_jobs(place: Place) -> set[str]:
    """Return the jobs of a place that wait for a sync, with their submit times. UnreachableError if it is silent."""
    return set() if place.here else set(place.run(f"{scripts.gate()}home_waiting").text.splitlines())


def explained(run: Run, status: Status) -> Status:
    """Return the status of a run; the reason of one that waits for a home sync also says why the last sync failed."""
    if not status.reason.startswith(WAITS_FOR_SYNC):
        return status
    since = status.submitted or run.created
    why = [problem(each) for each in _last(run.context) if each.code and each.ended >= since]
    reason = f"{WAITS_FOR_SYNC}; the last sync failed: {why[0]}" if why else WAITS_FOR_SYNC
    return msgspec.structs.replace(status, reason=reason)


def problem(outcome: Outcome) -> str:
    """Return why a sync did not succeed, in a few words."""
    if outcome.problem:
        return outcome.problem
    conflicts = len(outcome.conflicts)
    found = [f"{conflicts} conflict{'' if conflicts == 1 else 's'} (see `yurt home conflicts`)"] if conflicts else []
    found += [deletions.text(each) for each in outcome.deletions[:1]]
    found += [f"'{shown(each.path)}' was not synced: {each.why}" for each in outcome.failed[:1]]
    more = max(0, len(outcome.deletions) - 1) + max(0, len(outcome.failed) - 1)
    text = "; ".join(found) or f"Unison ended with exit code {outcome.code}"
    return f"{text}; and {more} more" if more else text


def _last(context: str) -> list[Outcome]:
    """Return the last outcome of each pair of a context."""
    found = ledger.read()
    last = [each for pair in found.outcomes if (each := found.last(pair)) is not None]
    return [each for each in last if context in (each.hub, each.spoke)]
