"""What users see of a race: its candidates, and its winner."""

from __future__ import annotations

from collections import Counter

from yurt.model import ids
from yurt.model.race import ONLY, RaceCandidate, queue_seconds, task_of
from yurt.model.run import Run
from yurt.model.state import RACED_ON
from yurt.store import Entry, Store


def candidates(store: Store, race: str) -> list[RaceCandidate]:
    """Return the candidates of a race, in the order in which they were named."""
    holders = store.holders(race)
    won = Counter(holders.values())
    decided = ONLY in holders
    found = []
    for entry in store.several(store.candidates(race)):
        run, status = entry.run, entry.status
        lost = not run.tasks and decided and not won[run.id] and status.reason != RACED_ON
        unsent = status.final and not status.job and status.submitted is None
        withdrawn = f"withdrawn{' before it was submitted' if unsent else ''}" if status.final else "being withdrawn"
        found.append(
            RaceCandidate(
                id=run.id,
                context=run.context,
                partition=run.resources.partition or "",
                state=status.state,
                reason=withdrawn if lost else status.reason,
                job=status.job,
                won=bool(won[run.id]),
                tasks=won[run.id] if run.tasks else 0,
                queued=None if run.tasks or unsent else queue_seconds(status, run.created),
            )
        )
    return found


def contexts_of(store: Store, run: Run) -> list[str]:
    """Return the contexts of a run: of a race, those of its candidates."""
    if not is_race(run):
        return [run.context]
    return list(dict.fromkeys(each.run.context for each in store.several(store.candidates(run.id))))


def is_race(run: Run) -> bool:
    """Whether a run is a race, or an item of one, and not a candidate."""
    return bool(run.race) and run.race in (run.id, run.sweep)


def in_queues(store: Store, entry: Entry) -> list[Entry]:
    """Return the unfinished candidates of a race, or of an item of one."""
    names = store.candidates(entry.run.race)
    if entry.run.task is None:
        return [each for each in store.several(names) if not each.status.final]
    found = []
    for name in names:
        plan = store.plan(name)
        if plan is not None and plan.race is not None:
            found.append(ids.task(name, task_of(plan.race, entry.run.task, plan.run.tasks)))
    return [each for each in store.several(found) if not each.status.final]
