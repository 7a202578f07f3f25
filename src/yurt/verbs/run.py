"""run: plan a run of a command, and submit it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config import contexts, facts, neptune, unused_keys
from yurt.errors import UnreachableError, YurtError
from yurt.lifecycle.outbox.pending import cancel_saved
from yurt.lifecycle.plan.plan import plan
from yurt.lifecycle.plan.request import Planned, Request
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Plan, Run
from yurt.sites import folders
from yurt.store import Entry, Store
from yurt.store.connection import INDEX_CODES
from yurt.verbs.result import Result

if TYPE_CHECKING:
    from yurt.backends.base import Runs
    from yurt.model.facts import Facts
    from yurt.model.race import Mode
    from yurt.model.run import After


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run or sweep: its record, the submit command, and the files to upload."""

    run: Run
    sets: list[dict[str, Any]]
    """Parameters of each task of a sweep."""
    submitted_as: str
    script: str
    data: str
    uploads: dict[str, int]
    """Size of each file in bytes; the code is uploaded only if the context does not have it yet."""
    sbatch_variables: dict[str, str] = {}
    """Options of sbatch in the environment on the site, as of its last probe; those of yurt replace them."""


def run(
    request: Request,
    *,
    context: str = "",
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    notify: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> Result[Entry]:
    """Plan a run, save it, and submit it, after all runs saved before it.

    After `on_kept` was called with its id, the run is not lost: if it cannot be submitted now, a later yurt command
    submits it. RefusedError: the site rejects the run; nothing is saved. `notify` is how to notify the user when the
    run has finished. A run that waits for a home sync is passed to `on_held` before the sync, which follows.
    """
    from yurt.lifecycle.outbox.enqueue import enqueue

    try:
        cancel_saved(folders.known_store(), contexts.current_name(context))
        place, planned, known = _planned(request, context, after, after_any, watch)
        index = known or folders.store()
        if notify:
            index.note_notice(planned.plan.run.id, notify)
        entry, warnings = enqueue(index, place, planned, on_kept=on_kept, watch=watch)
        if entry.run.home_sync:
            from yurt.verbs.syncing import sync_first

            (entry,), notes = sync_first(index, [entry], on_held=on_held, watch=watch)
            warnings += notes
    except YurtError as error:
        _note_refused(error)
        raise
    notes = [*unused_keys.first_time(place.name), *neptune.first_time(entry.run.settings)]
    return Result(kind="run", data=entry, warnings=[*notes, *warnings, *_advice(index, entry.run)])


def race(
    candidates: Sequence[tuple[str, Request]],
    mode: Mode | None = None,
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    notify: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    on_held: Callable[[Entry], None] = lambda _entry: None,
    watch: Watch = unwatched,
) -> Result[Entry]:
    """Plan one run for each candidate, a context and its request, and submit them as a race: the first to start wins.

    Nothing is submitted unless all of them can be planned, but those whose site does not respond. Otherwise as `run`.
    """
    from yurt.lifecycle.race.submit import submit
    from yurt.verbs.race import first_cost

    try:
        places, plans, absent = [], [], list[str]()
        for context, request in candidates:
            cancel_saved(folders.known_store(), contexts.current_name(context))
            try:
                place, planned, _known = _planned(request, context, after, after_any, watch)
            except UnreachableError as error:  # it needs something that only its site knows, such as its environment
                absent.append(f"{error.message}; the race goes on without {context}")
                if len(absent) == len(candidates):
                    raise
                continue
            places.append(place)
            plans.append(planned)
        index = folders.store()
        entry, warnings = submit(index, places, plans, mode, notify=notify, on_kept=on_kept, watch=watch)
        members = index.several(index.candidates(entry.run.id))
        if any(each.run.home_sync for each in members):
            from yurt.verbs.syncing import sync_first

            on_held(entry)
            _members, notes = sync_first(index, members, watch=watch)
            warnings += notes
    except YurtError as error:
        _note_refused(error)
        raise
    entry = index.get(entry.run.id) or entry
    unused = [text for place in places for text in unused_keys.first_time(place.name)]
    told = [*unused, *neptune.first_time(entry.run.settings), *first_cost(index, entry.run.id)]
    return Result(kind="run", data=entry, warnings=[*told, *absent, *warnings])


def _note_refused(error: YurtError) -> None:
    """Record that this run is not the last run: then `-` does not mean the one before it."""
    if error.code in INDEX_CODES:
        return  # the index is what failed, perhaps after a long wait
    with suppress(YurtError):
        if (known := folders.known_store()) is not None:
            known.note_refused(error.message)


def _advice(index: Store, run: Run) -> list[str]:
    from yurt.lifecycle.advice import advice

    return advice(index, run)


def job_number(entry: Entry) -> str:
    """Return the scheduler's job id of a run; empty if the context has no scheduler."""
    from yurt.backends.kinds import kind_of

    return entry.status.job if kind_of(entry.run.context_type).scheduler else ""


def preview(
    request: Request,
    *,
    context: str = "",
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    watch: Watch = unwatched,
) -> Result[PlanView]:
    """Return what `run` would submit. Submits and saves nothing."""
    from yurt.sites import connect

    place, planned, _known = _planned(request, context, after, after_any, watch, offline=False)
    view = _view(planned.plan, connect.backend(place).runs, facts.load(place))
    return Result(kind="plan", data=view, warnings=[*unused_keys.all_of(place.name), *planned.warnings])


def _planned(
    request: Request,
    context: str,
    after: Sequence[str],
    after_any: Sequence[str],
    watch: Watch,
    *,
    offline: bool = True,
) -> tuple[Context, Planned, Store | None]:
    """Plan a run. A plan that fails creates nothing, not even an empty index."""
    place = contexts.site(contexts.current_name(context))
    known = folders.known_store()
    if after or after_any:
        known = known or folders.store()
        follows = [
            *_follows(known, after, place.name, ended=False),
            *_follows(known, after_any, place.name, ended=True),
        ]
        request = msgspec.structs.replace(request, after=follows)
    return place, plan(place, request, index=known, offline=offline, watch=watch), known


def _follows(index: Store, names: Sequence[str], context: str, *, ended: bool) -> list[After]:
    from yurt.lifecycle.outbox.dependencies import following
    from yurt.lifecycle.select import which

    return following(which(index, names), context, ended=ended) if names else []


def _view(plan: Plan, runs: Runs, known: Facts | None) -> PlanView:
    preview = runs.preview(plan)
    return PlanView(
        run=plan.run,
        sets=plan.sets,
        submitted_as=preview.command,
        script=preview.files[layout.JOB].decode(),
        data=preview.files[layout.DATA].decode(errors="backslashreplace"),
        uploads={"code": plan.run.code.size, **{name: len(each) for name, each in preview.files.items()}},
        sbatch_variables=known.sbatch_variables if known is not None else {},
    )
