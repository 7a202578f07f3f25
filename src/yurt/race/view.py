"""What users see of a race: its candidates."""

from __future__ import annotations

from collections import Counter

from yurt.model.race import ONLY, Candidate, queue_seconds
from yurt.store import Entry, Store


def candidates(store: Store, race: str) -> list[Candidate]:
    """Return the candidates of a race, in the order in which they were named."""
    holders = store.holders(race)
    won = Counter(holders.values())
    decided = ONLY in holders
    found = []
    for entry in store.several(store.candidates(race)):
        run, status = entry.run, entry.status
        lost = not run.tasks and decided and not won[run.id]
        found.append(
            Candidate(
                id=run.id,
                context=run.context,
                partition=run.resources.partition or "",
                state=status.state,
                reason=("withdrawn" if status.final else "being withdrawn") if lost else status.reason,
                job=status.job,
                won=bool(won[run.id]),
                tasks=won[run.id] if run.tasks else 0,
                queued=None if run.tasks else queue_seconds(status, run.created),
            )
        )
    return found


def open_members(store: Store, entries: list[Entry]) -> list[Entry]:
    """Return runs with each race replaced by its unfinished candidates."""
    found: list[Entry] = []
    for entry in entries:
        if entry.run.race != entry.run.id or not entry.run.race:
            found.append(entry)
        else:
            found += [each for each in store.several(store.candidates(entry.run.id)) if not each.status.final]
    return found
