"""Saves a plan and submits it, or leaves it in the outbox if the context is unreachable."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from yurt.config import paths
from yurt.contexts import connect, early_answer
from yurt.contexts.advance import Advanced
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.lifecycle.outbox import claims
from yurt.lifecycle.outbox.claims import Claim
from yurt.lifecycle.outbox.dependencies import turn
from yurt.lifecycle.outbox.outbox import send_waiting
from yurt.lifecycle.plan.request import Planned
from yurt.model.context import Context
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Plan, Status
from yurt.store import Entry, Store
from yurt.store.connection import INDEX_CODES

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def enqueue(
    store: Store,
    context: Context,
    planned: Planned,
    *,
    by: str = "",
    on_kept: Callable[[str], None] = lambda _run: None,
    watch: Watch = unwatched,
) -> tuple[Entry, list[str]]:
    """Save a plan and submit it, after the runs that are already in the outbox. Return the run, and warnings.

    Once the plan is saved and `on_kept` was called with its id, the run is not lost: if it cannot be submitted now, it
    is submitted later. RefusedError: the site rejected the run, and nothing of it is kept. `by`: who submits a saved
    run; a later yurt command by default.
    """
    plan = planned.plan
    before = turn(store, plan.run)
    if before.never:
        raise RefusedError(
            f"the run cannot start: {before.never}",
            code="impossible",
            hint=f"retry it with `yurt retry {before.run}`, or use `--after-any {before.run}`",
        )
    backend = connect.backend(context)
    early_answer.states_changed()
    claim = claims.take(plan.run.id)  # before other processes see the run
    assert claim is not None
    saved: list[str] = []

    def kept(run: str) -> None:
        saved.append(run)
        on_kept(run)

    try:
        with claim:
            moved = _save_and_send(store, context, backend, planned, claim=claim, on_kept=kept, watch=watch)
    except KeyboardInterrupt:
        if not saved and store.get(plan.run.id) is not None:  # it came just after the run was saved
            on_kept(plan.run.id)
        raise
    except RefusedError as error:
        if error.code not in INDEX_CODES:  # those of the site are results of `send_waiting`, not raised
            raise
        if not saved:
            error.message += "; nothing was submitted"
            raise
        later = f"run {plan.run.id} is saved; {by or 'the next yurt command'} finds out whether it was submitted"
        return Entry(plan.run, Status(state="waiting", reason=error.message)), [f"{error.message}; {later}"]
    if plan.run.id in moved.refused:
        store.remove(plan.run.id)
        if plan.calls:
            from yurt.store import calls

            calls.collect(store)
        raise moved.refused[plan.run.id]
    claims.collect()
    store.collect_saved()
    entry = store.get(plan.run.id)
    assert entry is not None
    _note_wait(store, context, plan, entry)
    warnings = [*planned.warnings, *(f"run {run}: {note}" for run, note in moved.notes.items())]
    if entry.status.state == "waiting" and (follows := turn(store, plan.run).later):
        warnings.append(f"run {plan.run.id} is saved: {follows}; {by or 'a later yurt command'} will submit it")
    elif entry.status.state == "waiting":
        why = entry.status.reason or "earlier runs have not been submitted yet"
        why = moved.stopped.message if moved.stopped is not None else why
        full = moved.stopped is not None and moved.stopped.code == "submit-limit"
        later = f"will be submitted by {by or 'the next yurt command'}" + (" after a job finishes" if full else "")
        if planned.unsettled is not None:
            later = f"will be checked and submitted by {by or 'the next yurt command'} that reaches {context.name}"
        warnings.append(f"{why}; run {plan.run.id} is saved and {later}")
    return entry, warnings


def _save_and_send(
    store: Store,
    context: Context,
    backend: Backend,
    planned: Planned,
    *,
    claim: Claim,
    on_kept: Callable[[str], None],
    watch: Watch,
) -> Advanced:
    """Save a plan, and submit it unless its site did not respond just now."""
    plan, silent = planned.plan, _silence(context, backend, planned)
    if silent is not None:
        draft = planned.unsettled.draft if planned.unsettled is not None else b""
        store.add(plan.run, Status(state="waiting", reason=silent.message), plan, draft)
    else:
        store.add(plan.run, Status(state="submitting", attempts=1, unsure_since=time.time()), plan)
    if plan.calls:
        from yurt.store import calls

        calls.release(plan.run.id)
    on_kept(plan.run.id)
    if silent is not None:
        return Advanced(stopped=silent)
    return send_waiting(store, context.name, backend, watch, fresh=plan.run.id, claim=claim)


def _note_wait(store: Store, context: Context, plan: Plan, entry: Entry) -> None:
    """Record what the wait of a new run is worth for later estimates, and what `yurt where` expected of it."""
    if "hold" in plan.native_options:
        store.note_held(context.name, [plan.run.id], time.time())
    if (paths.data_home() / "where" / f"{context.name}.json").exists():
        from yurt.where import estimate

        with suppress(YurtError):  # the run is submitted
            estimate.note(store, context, plan, entry)


def _silence(context: Context, backend: Backend, planned: Planned) -> UnreachableError | None:
    """Return the error of a site that does not respond, or did not a moment ago."""
    if planned.unsettled is not None:
        return planned.unsettled.why
    try:
        connect.check_responds(context, backend, scheduler=True)
    except UnreachableError as error:
        return error
    return None
