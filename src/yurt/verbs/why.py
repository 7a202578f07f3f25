"""why: what holds a run up, or why it failed, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from yurt.config import contexts, paths
from yurt.errors import YurtError
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import name_warnings, which
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import FINAL
from yurt.model.stage import lost_outputs
from yurt.model.state import LOST_OUTPUTS, read_ending
from yurt.sites import connect, folders
from yurt.sites.facts import facts_if_probed
from yurt.store import Entry, Store
from yurt.verbs.fresh import is_fresh
from yurt.verbs.result import Result
from yurt.why import not_started
from yurt.why.failed import Cause, Evidence, cause_of
from yurt.why.pending import Pending, pending
from yurt.why.rules import Rule, known, own

_LOST = "your command succeeded; see `yurt storage` for full disks, fetch what there is with `yurt fetch RUN`"

MOST = 500
"""Failed tasks whose logs are read."""


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Failed tasks of a sweep with the same cause."""

    cause: Cause
    """The cause of the first one."""
    tasks: list[int]
    """Their numbers."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run is in its state."""

    run: str
    name: str = ""
    """The user's name of the run."""
    context: str
    state: str
    reason: str = ""
    """The reason that `yurt ps` shows."""
    cause: Cause | None = None
    """Why it failed; null if it did not."""
    pending: Pending | None = None
    """What it waits for; null if it is not in the queue."""
    groups: list[FailureGroup] = []
    """Of a sweep: its failed tasks by cause, the most frequent first."""
    unread: int = 0
    """Of a sweep: how many failed tasks were not looked at."""


def why(name: str, *, watch: Watch = unwatched) -> Result[Explanation]:
    """Explain the state of a run or of a sweep; its site is queried if that can tell more. A site that does not
    respond is a warning."""
    store = folders.store()
    (entry,) = which(store, [name])
    warnings = name_warnings(store, [name])
    context = entry.run.context
    watch(Event(f"querying {context}" if context else "reading"))
    if not entry.status.final and not is_fresh(store, context):
        warnings += refresh_contexts(store, [context], also=[entry.run.id]).warnings
        (entry,) = which(store, [entry.run.id])
    rules = [*own(paths.config_home()), *known()]
    run, status = entry.run, entry.status
    made = Explanation(run=run.id, name=run.name, context=context, state=status.state, reason=status.reason)
    if run.tasks:
        groups, unread, problem = _groups(store, entry, rules)
        made = msgspec.structs.replace(made, groups=groups, unread=unread)
    elif status.final and status.state != "completed":
        cause, problem = _cause(store, entry, rules)
        made = msgspec.structs.replace(made, cause=cause)
    else:
        problem = ""
    if status.state in ("queued", "held", "requeued"):
        wait, problem = _pending(entry)
        made = msgspec.structs.replace(made, pending=wait)
    return Result(kind="why", data=made, warnings=[*warnings, *([problem] if problem else [])])


def _pending(entry: Entry) -> tuple[Pending, str]:
    """Return what a run in the queue waits for, and a warning if its site cannot be queried."""
    run, status = entry.run, entry.status
    live, problem = None, ""
    try:
        context = contexts.named(run.context)
        backend = connect.backend(context)
        connect.check_responds(context, backend)
        facts = facts_if_probed(context)
        live = backend.site.look(facts.accounts if facts is not None else [])
    except YurtError as error:
        problem = f"cannot query {run.context}: {error.message.removeprefix(f'{run.context}: ')}"
    return pending(run, status, live, time.time()), problem


def _cause(store: Store, entry: Entry, rules: Sequence[Rule]) -> tuple[Cause, str]:
    problem = ""
    if entry.run.folder and not store.is_kept(entry.run.id):
        try:
            archive.bring_all(store, connect.responding_backend(entry.run.context).files, [entry])
        except YurtError as error:
            problem = f"its logs are not here, and {entry.run.context} cannot be queried: {error.message}"
    return _explained(store, entry, rules), problem


def _groups(store: Store, sweep: Entry, rules: Sequence[Rule]) -> tuple[list[FailureGroup], int, str]:
    """Return the failed tasks of a sweep by cause, how many were not read, and a warning."""
    numbers = [number for number, status in store.tasks(sweep.run.id).items() if _has_failed(status.state)]
    tasks = [entry for number in numbers[:MOST] if (entry := store.get(f"{sweep.run.id}.{number}")) is not None]
    problem = ""
    missing = [entry for entry in tasks if entry.run.folder and not store.is_kept(entry.run.id)]
    if missing:
        try:
            archive.bring_all(store, connect.responding_backend(sweep.run.context).files, missing)
        except YurtError as error:
            problem = f"some logs are not here, and {sweep.run.context} cannot be queried: {error.message}"
    return grouped((entry, _explained(store, entry, rules)) for entry in tasks), len(numbers) - len(tasks), problem


def grouped(found: Iterable[tuple[Entry, Cause]]) -> list[FailureGroup]:
    """Return tasks by the sentence of their cause, the most frequent first."""
    groups: dict[str, FailureGroup] = {}
    for entry, cause in found:
        number = entry.run.task or 0
        group = groups.setdefault(cause.sentence, FailureGroup(cause=cause, tasks=[]))
        group.tasks.append(number)
    return sorted(groups.values(), key=lambda each: -len(each.tasks))


def _has_failed(state: str) -> bool:
    return state in FINAL and state not in ("completed", "cancelled")


def _explained(store: Store, entry: Entry, rules: Sequence[Rule]) -> Cause:
    kept = store.kept(entry.run.id)
    out, err = ("", "") if kept is None else (kept.out.decode(errors="replace"), kept.err.decode(errors="replace"))
    ending = read_ending(kept.ending) if kept is not None else None
    run, status = entry.run, entry.status
    if ending is not None and ending.why:  # the job knows why its command did not start
        return Cause(name="not-started", sentence=ending.why, advice=not_started.advice(ending.why, run.id))
    if status.state == "failed" and status.exit_code == LOST_OUTPUTS and (lost := lost_outputs(run, status)):
        return Cause(name="outputs-not-copied", sentence=lost, advice=_LOST.replace("RUN", run.id))
    if not status.attempts and status.reason and status.state != "cancelled":  # it never started
        return Cause(name="rejected", sentence=status.reason)
    cause = cause_of(Evidence(run=run, status=status, out=out, err=err), rules)
    lost = lost_outputs(run, status)
    return msgspec.structs.replace(cause, sentence=f"{cause.sentence}; {lost}") if lost not in cause.sentence else cause
