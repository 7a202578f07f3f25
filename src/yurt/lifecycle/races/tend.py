"""Does what is due for races: carries claims, learns who holds them, withdraws the others, and cleans up.

Safe to repeat, and to kill. Nothing is decided here: the folder of claims decides. While a site does not respond, its
candidates stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from yurt.backends.slurm.states import UNANSWERED
from yurt.contexts import connect
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.outbox.cancellations import request, tell_cancel
from yurt.model import ids, layout
from yurt.model.race import ONLY, current, merged, task_of
from yurt.model.run import Plan, Race, Run, Status
from yurt.model.state import RACED_ON
from yurt.model.tasks import Within
from yurt.store import Entry, Store
from yurt.store.races import placed
from yurt.store.tasks import usual

BEGUN = ("running", "starting", "requeued", "unknown")
"""States of a candidate whose job may have asked who holds the claim."""

PENDING = ("waiting", "submitting", "queued", "held", "starting")
"""States that the index shows until a refresh has seen the job of a candidate start."""

FULL = ("disk-full", "quota-full")
"""Why a site cannot change its file of keys now, but later."""


def tend(store: Store) -> list[str]:
    """Do what is due for the races of this machine, unless another process does it; return warnings."""
    warnings: list[str] = []
    for race in store.open_races():
        claim = claims.take(race)
        if claim is not None:
            with claim:
                warnings += tend_one(store, race)
    return warnings


def tend_one(store: Store, race: str) -> list[str]:
    """Do what is due for one race, which no other process may do now."""
    whole, plan = store.get(race), store.plan(race)
    if whole is None or plan is None or plan.race is None:
        store.close_race(race)
        return []
    before = _look(store, race)
    warnings = []
    asked, silent = True, ""
    try:
        _ask(store, plan.race, whole.run, before.members)
    except YurtError as error:
        warnings.append(f"race {race}: cannot find out who was first: {error.message}")
        asked, silent = isinstance(error, RefusedError), plan.race.arbiter
        if asked:  # the folder of claims is gone
            store.note_holders(race, _evident(before, store.holders(race), whole.run.tasks))
    cancelled = whole.status.state == "cancelled"
    if not cancelled and (lost := _lost_its_node(before, store.holders(race))) is not None:
        warnings += _go_on(store, plan.race, *lost)
        before = _look(store, race)
    holders = store.holders(race)
    withdraw(store, whole.run, before.members, holders)
    _let_start(before, holders)
    after = _look(store, race)
    # Another process may have seen by now how candidates ended that started after this one asked. So an item that
    # nobody holds is shown as it was before; and if nobody answered, it is not over.
    goes_on = _lost_its_node(after, holders) is not None
    if not (goes_on and cancelled):
        present(store, whole, before, after, holders, nobody=plan.run, asked=asked, silent=silent)
    decided = len(holders) >= max(1, whole.run.tasks)
    over = after.over and (cancelled or not goes_on)
    if over and (decided or (before.over and asked)) and close(plan.race):
        store.close_race(race)
    return warnings


def _lost_its_node(look: Look, holders: dict[int, str]) -> tuple[Entry, Plan] | None:
    """Return the winner of a race that goes on without it."""
    members = (each for each in look.members if each[0].run.id == holders.get(ONLY) and not each[0].run.tasks)
    return next((each for each in members if each[0].status.reason == RACED_ON), None)


def _go_on(store: Store, race: Race, lost: Entry, plan: Plan) -> list[str]:
    from yurt.lifecycle.races import again  # rarely needed

    try:
        return again.go_on(store, race, plan, lost.status)
    except YurtError as error:
        return [f"race {race.id} does not go on yet: {error.message}"]


class Look(NamedTuple):
    """The candidates of a race at one moment, and the tasks of those that are sweeps."""

    members: list[tuple[Entry, Plan]]
    tasks: dict[str, dict[int, Status]]

    @property
    def over(self) -> bool:
        return all(entry.status.final for entry, _plan in self.members)

    def of(self, item: int) -> list[tuple[Run, Status]]:
        """Return what each candidate has of an item."""
        return [(entry.run, _status(entry, plan, self.tasks[entry.run.id], item)) for entry, plan in self.members]


def _evident(look: Look, holders: dict[int, str], count: int) -> dict[int, str]:
    """Return who must have held items without a known holder: code completes only where the claim was held."""
    left = [item for item in range(count or 1) if item not in holders]
    return {item: run.id for item in left for run, status in look.of(item) if status.state == "completed"}


NOBODY = Look([], {})
"""A race without candidates."""


def _look(store: Store, race: str) -> Look:
    members = _members(store, race)
    return Look(members, {entry.run.id: store.tasks(entry.run.id) if entry.run.tasks else {} for entry, _ in members})


def _members(store: Store, race: str) -> list[tuple[Entry, Plan]]:
    found = [(store.get(name), store.plan(name)) for name in store.candidates(race)]
    return [(entry, plan) for entry, plan in found if entry is not None and plan is not None]


def _ask(store: Store, race: Race, whole: Run, members: Sequence[tuple[Entry, Plan]]) -> None:
    """Carry the claims that jobs wait for, and learn who holds which item. YurtError: the arbiter does not respond."""
    open_ones = [(entry, plan) for entry, plan in members if not entry.status.final]
    undecided = len(store.holders(race.id)) < max(1, whole.tasks)
    # Candidates that have all ended are asked for too: one of them may have held the claim.
    if not any(entry.status.attempts for entry, _plan in members) or not (undecided or whole.restart_policy):
        return
    refused: RefusedError | None = None
    for context in dict.fromkeys(entry.run.context for entry, plan in open_ones if _may_ask(entry, plan)):
        own = [entry.run for entry, plan in open_ones if entry.run.context == context and _may_ask(entry, plan)]
        try:
            _carry(race, context, own)
        except UnreachableError:
            continue
        except RefusedError as error:  # such as a full disk: the others go on
            refused = error
    if undecided:
        found = connect.responding_backend(race.arbiter).claims.holders(race.folder)
        known = {entry.run.id for entry, _plan in members}
        store.note_holders(race.id, {item: holder for item, holder in found.items() if holder in known})
    if refused is not None:
        raise refused


def _may_ask(entry: Entry, plan: Plan) -> bool:
    if plan.race is None or plan.race.here:
        return False
    return entry.status.state in BEGUN or any(entry.status.task_states.get(state) for state in BEGUN)


def _carry(race: Race, context: str, runs: Sequence[Run]) -> None:
    site = connect.responding_backend(context)
    wants = site.claims.wants([run.folder for run in runs])
    if not wants:
        return
    arbiter, names = connect.responding_backend(race.arbiter), {run.id for run in runs}
    answers = []
    for want in wants:
        run = runs[want.folder]
        if want.candidate not in names:
            continue
        holder = arbiter.claims.claim(race.folder, want.item, want.candidate)
        folder = run.folder if want.task is None else layout.task(run.folder, want.task)
        answers += [(folder, want.word, holder)] if holder else []
    if answers:
        site.claims.answer(answers)


def withdraw(store: Store, whole: Run, members: Sequence[tuple[Entry, Plan]], holders: dict[int, str]) -> None:
    """Cancel the candidates that lost; a request that does not arrive is repeated by the next refresh of its site."""
    for entry, plan in members:
        if entry.status.final:
            continue
        lost = list(_lost(store, whole, entry, plan, holders))
        if not lost:
            continue
        request(store, store.several(lost))
        alive = [each.run.id for each in store.several(lost) if not each.status.final]
        with suppress(YurtError):
            if alive:
                tell_cancel(store, alive, connect.responding_backend(entry.run.context).runs)


def _let_start(look: Look, holders: dict[int, str]) -> None:
    """Release jobs that are held after their last question, which a yurt command has answered in the same moment."""
    for entry, plan in look.members:
        run, count = entry.run.id, entry.run.tasks
        if count and plan.race is not None:
            won = {task_of(plan.race, item, count) for item, holder in holders.items() if holder == run}
            held = [each for task, each in look.tasks[run].items() if task in won and _is_unanswered(each)]
            jobs = [each.job.partition("_")[0] for each in held if each.job]
        else:
            told = _is_unanswered(entry.status) and run in holders.values()
            jobs = [f"jobname={layout.job_name(run)}"] if told else []
        if jobs:
            with suppress(YurtError):
                connect.responding_backend(entry.run.context).runs.release(jobs)


def _is_unanswered(status: Status) -> bool:
    return status.state == "held" and UNANSWERED in status.native


def _lost(store: Store, whole: Run, entry: Entry, plan: Plan, holders: dict[int, str]) -> Iterator[str]:
    """Yield what a candidate lost and still has in the queue: itself, or tasks of a sweep."""
    run = entry.run.id
    if not whole.tasks:
        if holders.get(ONLY, run) != run and not entry.status.cancel_requested:
            yield run
        return
    assert plan.race is not None
    known = store.tasks(run)
    for item, holder in holders.items():
        task = task_of(plan.race, item, whole.tasks)
        status = known.get(task)
        if holder != run and (status is None or not (status.final or status.cancel_requested)):
            yield ids.task(run, task)


def present(
    store: Store,
    whole: Entry,
    before: Look,
    after: Look,
    holders: dict[int, str],
    *,
    nobody: Run | None = None,
    asked: bool = True,
    silent: str = "",
) -> None:
    """Update the record of the race: it stands for its winner, item by item. `before`: before somebody asked.

    `nobody`: the race as it was before somebody won. `silent`: the arbiter, if it cannot decide now.
    """
    if not after.members and whole.status.final:
        return  # cancelled before it had candidates
    count = whole.run.tasks
    known = store.tasks(whole.run.id) if count else {}
    found: dict[int, Status] = {}
    for item in range(count or 1):
        holder = holders.get(item, "")
        own = (after if holder else before).of(item)
        if not holder and not asked and all(status.final for _run, status in own):
            continue
        status = merged(own if holder else current(own), holder)
        if silent and not holder and status.state == "starting":
            status = msgspec.structs.replace(
                status, reason=f"{status.reason}; {silent}, which decides, does not respond"
            )
        if not count:
            winner = next((run for run, _status in own if run.id == holder), None)
            store.set_race(placed(whole.run, winner or nobody), _explained(whole.run.id, status, winner))
        elif known.get(item) != status:
            found[item] = status
    if found:
        store.set_race_tasks(whole.run.id, found, f"0-{count - 1}" if count > 1 else "0")


def _explained(race: str, status: Status, winner: Run | None) -> Status:
    """Return the status of a race that is its winner's, in other words where the winner alone does not say enough."""
    if winner is None:
        return status
    if status.reason == RACED_ON:
        how = f"its node failed on {winner.context}; it will be submitted again to all contexts"
        return Status(state="waiting", reason=how)
    if status.state == "node_failed":
        how = f"{status.reason or 'its node failed'} on {winner.context}; race again with `yurt retry {race}`"
        return msgspec.structs.replace(status, reason=how)
    if status.state in PENDING and status.start == 1:  # its job has started, as the claim proves
        return msgspec.structs.replace(status, state="starting", reason=f"{winner.context} was first")
    return status


def _status(entry: Entry, plan: Plan, tasks: dict[int, Status], item: int) -> Status:
    """Return the status of a candidate; of a sweep, of its task that has an item."""
    if not entry.run.tasks:
        return entry.status
    assert plan.race is not None
    number = task_of(plan.race, item, entry.run.tasks)
    if number in tasks:
        return tasks[number]
    return usual(entry.status, out=number in Within(entry.status.submitted_tasks))


def close(race: Race) -> bool:
    """Remove the claims and the keys of a race that is over; return False if a site did not respond."""
    done = True
    for name, folder in [(race.arbiter, race.folder), *race.keys]:
        try:
            connect.responding_backend(name).claims.close(folder)
        except RefusedError as error:  # the folder is gone, or the site has changed
            done = done and error.code not in FULL
        except YurtError:
            done = False
    return done
