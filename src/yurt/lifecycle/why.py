"""why: what holds a run up, or why it failed, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.cli import render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, verb
from yurt.config import contexts
from yurt.config import facts as recorded_facts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.errors import YurtError
from yurt.lifecycle.awaited import awaited
from yurt.lifecycle.causes import amounts
from yurt.lifecycle.causes import pending as waits
from yurt.lifecycle.causes.failed import Cause
from yurt.lifecycle.causes.rules import Rule
from yurt.lifecycle.fresh import is_fresh
from yurt.lifecycle.refresh import archive, causes
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import name_warnings, which
from yurt.lifecycle.show_usage import usage
from yurt.model.advice import unused_gpu
from yurt.model.live import NodeTrouble
from yurt.model.pending import Awaited, Pending
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.race import RaceCandidate
from yurt.model.result import Result
from yurt.model.run import FINAL, Status
from yurt.model.state import NEVER_SATISFIED
from yurt.model.waiting import EndedJob
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yurt.lifecycle.causes.failed import Cause
    from yurt.model.live import NodeTrouble, Reservation
    from yurt.model.pending import Awaited, Pending


MOST = 500
"""Failed tasks whose logs are read."""

QUEUED = frozenset(("queued", "held", "requeued"))
"""States of a run in the queue of its site."""

JOB_LIMIT = "reached your job limit"
"""Part of the reason of a run that the site did not accept, because too many jobs are submitted."""

ASKED = ("node_failed", "lost", "out_of_memory")
"""Final states about which the site may know more than the logs."""


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
    after: list[Awaited] = []
    """If it was cancelled because of the runs that it depends on: those that did not complete."""
    groups: list[FailureGroup] = []
    """Of a sweep: its failed tasks by cause, the most frequent first."""
    unread: int = 0
    """Of a sweep: how many failed tasks were not looked at."""
    candidates: list[RaceCandidate] = []
    """Of a race: what each candidate waits for."""
    unused: Cause | None = None
    """Of a run that did not fail: what it holds and does not use; null if it uses what it asked for."""
    node: NodeTrouble | None = None
    """The state of the node of a failed run now, if the site was queried and the node is not in order."""
    admin_comment: str = ""
    """What an administrator wrote about the job of a failed run, if the site was queried and has accounting."""
    system_comment: str = ""
    """What Slurm wrote about it."""


def why(name: str, *, watch: Watch = unwatched) -> Result[Explanation]:
    """Explain the state of a run or of a sweep; its site is queried if that can tell more. A site that does not
    respond is a warning."""
    store = folders.store()
    (entry,) = which(store, [name])
    warnings = name_warnings(store, [name])
    context = entry.run.context
    watch(Event(f"querying {context}" if context else "reading"))
    silent = False
    if not entry.status.final and not is_fresh(store, context):
        refreshed = refresh_contexts(store, [context], also=[entry.run.id])
        warnings += refreshed.warnings
        silent = context in refreshed.failed
        (entry,) = which(store, [entry.run.id])
    rules = causes.all_rules()
    run, status = entry.run, _explained_sync(entry)
    entry = Entry(run, status)
    reason = status.reason if status.final else status.why
    made = Explanation(run=run.id, name=run.name, context=run.context, state=status.state, reason=reason)
    problem = ""
    if run.tasks:
        groups, unread, problem = _groups(store, entry, rules)
        made = msgspec.structs.replace(made, groups=groups, unread=unread)
        if status.state == "cancelled":
            made, unknown = _ended(store, entry, rules, made)
            problem = problem or unknown
    elif status.final and status.state != "completed":
        made, problem = _ended(store, entry, rules, made)
    if status.state in waits.STATES or _has_queued_tasks(store, entry):
        wait, unknown = _pending(store, entry, silent=silent)
        problem = problem or unknown
        made = msgspec.structs.replace(made, pending=wait, candidates=_candidates(store, entry))
    elif made.cause is None:
        made = msgspec.structs.replace(made, unused=_unused(entry))
    return Result(kind="why", data=made, warnings=[*warnings, *([problem] if problem else [])])


CHECK_GPU = (
    "check that it uses the GPU: the device of its tensors, and packages that are built for CUDA; if it needs none, run"
    " it without `--gpus`"
)


def _unused(entry: Entry) -> Cause | None:
    """Return the GPUs that a run does not use, or did not use in its whole life; None if it uses them."""
    sentence = unused_gpu(entry.run.resources, usage(entry))
    return Cause(name="unused-gpu", sentence=sentence, advice=CHECK_GPU) if sentence else None


def _explained_sync(entry: Entry) -> Status:
    """Return the status; the reason of a run that waits for a home sync also says why the last sync failed."""
    if not entry.run.home_sync:
        return entry.status
    from yurt.homes import gate

    return gate.explained(entry.run, entry.status)


def _candidates(store: Store, entry: Entry) -> list[RaceCandidate]:
    if not entry.run.race or entry.run.race != entry.run.id:
        return []
    from yurt.lifecycle.races.view import candidates

    return candidates(store, entry.run.id)


def _has_queued_tasks(store: Store, entry: Entry) -> bool:
    """Whether some tasks of a running sweep are in the queue of a site; all of them are records of one job."""
    if not entry.run.tasks or entry.status.state != "running" or entry.run.context_type != "slurm":
        return False
    states = store.task_states(entry.run.id)
    return len(states) < entry.run.tasks or not QUEUED.isdisjoint(states.values())  # a queued task may have no row


def _pending(store: Store, entry: Entry, *, silent: bool) -> tuple[Pending, str]:
    """Return what a run waits for, and a warning if its site cannot be queried.

    `silent`: the site has just not responded, and is not queried again.
    """
    run, status, job = entry.run, entry.status, _job(store, entry)
    live, details, problem = None, None, ""
    if status.state == "running":  # the other tasks of a sweep; its own reason is about all tasks
        status = msgspec.structs.replace(status, state="queued", reason="", native="")
    listed = status.state in QUEUED and run.race != run.id
    if listed and not silent:
        try:
            context = contexts.named(run.context)
            backend = connect.backend(context)
            connect.check_responds(context, backend)
            facts = facts_if_probed(context)
            live, details = backend.site.look_at(job, facts.accounts if facts is not None else [])
        except YurtError as error:
            problem = f"cannot query {run.context}: {error.message.removeprefix(f'{run.context}: ')}"
    found = waits.pending(run, status, live, time.time(), number=job, details=details, after=awaited(store, run))
    if status.state == "waiting" and JOB_LIMIT in status.reason:
        limits = amounts.submit_limits(run.resources, recorded_facts.load(contexts.named(run.context)))
        found = msgspec.structs.replace(found, limits=limits)
    return found, problem


def _job(store: Store, entry: Entry) -> str:
    """Return the job of a run in the queue; of a task without one, that of its sweep."""
    if entry.status.job or not entry.run.sweep:
        return entry.status.job
    sweep = store.get(entry.run.sweep)
    return sweep.status.job if sweep is not None else ""


def _ended(store: Store, entry: Entry, rules: Sequence[Rule], made: Explanation) -> tuple[Explanation, str]:
    """Return the explanation of a run that has not completed, and a warning."""
    run, status = entry.run, entry.status
    missing = bool(run.folder) and not run.tasks and not store.is_kept(run.id)  # a sweep has no log of its own
    ask = bool(status.job) and run.context_type == "slurm" and _site_may_tell(status)
    problem, site = "", EndedJob()
    if missing or ask:
        try:
            backend = connect.responding_backend(run.context)
            if missing:
                archive.bring_all(store, backend.files, [entry])
            if ask:
                site = backend.site.look_back(status.job, status.node)
        except YurtError as error:
            logs = "its logs are not here, and " if missing and not store.is_kept(run.id) else ""
            problem = f"{logs}{run.context} cannot be queried: {error.message}"
    cause = causes.explained(entry, store.kept(run.id), rules, site)
    if not entry.status.cause and causes.has_failed(entry.status):
        causes.record(store, [entry])  # for tables
    bad = site.node if site.node is not None and (site.node.reason or site.node.state in ("down", "drained")) else None
    after = awaited(store, run) if status.reason == NEVER_SATISFIED else []
    made = msgspec.structs.replace(made, cause=_with_retry(run.id, cause, after), after=after, node=bad)
    return msgspec.structs.replace(made, admin_comment=site.admin_comment, system_comment=site.system_comment), problem


def _with_retry(run: str, cause: Cause, after: Sequence[Awaited]) -> Cause:
    """Return the cause with what to do about runs that did not complete: a retry does not depend on others."""
    failed = [each.run for each in after if each.state is not None]
    if not failed:
        return cause
    first = " and ".join(f"`yurt retry {each}`" for each in failed)
    return msgspec.structs.replace(cause, advice=f"run {first}; when that has completed, run `yurt retry {run}`")


def _site_may_tell(status: Status) -> bool:
    """Return whether the site may know more about the end of a run than its logs."""
    outside = status.state == "cancelled" and status.reason not in ("cancelled", "cancelled before it started")
    return status.state in ASKED or outside or (status.state == "failed" and bool(status.signal))


def _groups(store: Store, sweep: Entry, rules: Sequence[Rule]) -> tuple[list[FailureGroup], int, str]:
    """Return the failed tasks of a sweep by cause, how many were not read, and a warning."""
    numbers = [number for number, status in store.tasks(sweep.run.id).items() if causes.has_failed(status)]
    tasks = [entry for number in numbers[:MOST] if (entry := store.get(f"{sweep.run.id}.{number}")) is not None]
    problem = ""
    missing = [entry for entry in tasks if entry.run.folder and not store.is_kept(entry.run.id)]
    if missing:
        try:
            archive.bring_all(store, connect.responding_backend(sweep.run.context).files, missing)
        except YurtError as error:
            problem = f"some logs are not here, and {sweep.run.context} cannot be queried: {error.message}"
    found = ((entry, causes.explained(entry, store.kept(entry.run.id), rules)) for entry in tasks)
    return grouped(found), len(numbers) - len(tasks), problem


def grouped(found: Iterable[tuple[Entry, Cause]]) -> list[FailureGroup]:
    """Return tasks by the sentence of their cause, the most frequent first."""
    groups: dict[str, FailureGroup] = {}
    for entry, cause in found:
        number = entry.run.task or 0
        group = groups.setdefault(cause.sentence, FailureGroup(cause=cause, tasks=[]))
        group.tasks.append(number)
    return sorted(groups.values(), key=lambda each: -len(each.tasks))


SHOWN = 8
"""Numbers of tasks that are printed for each cause."""


@verb(examples=["yurt why -", "yurt why x7q4z", "yurt why @last-sweep --json"], context_help="")
@argument("run", metavar="RUN", shell_complete=run_names)
def why_command(run: str) -> int:
    """Explain why a run is pending or failed, and what to do.

    For a run in the queue: Slurm's reason in words, the limits with their values, its place in the queue, the expected
    start, and what administrators wrote about its nodes and its job. For a failed run: the cause according to its state
    and its logs, the last traceback, and the command to type if an option helps. For a sweep: its failed tasks by
    cause, with one example of each. For a run that holds GPUs and does not use them: that.

    Add rules of your own in `why.toml` in the configuration folder; they are tried first.
    """
    from yurt.cli.progress import watching

    with watching() as watch:
        found = why(run, watch=watch)
    return render.result(found, lambda: _print(found.data), requested=True)


def _print(found: Explanation) -> None:
    name = f" ({found.name})" if found.name else ""
    places = ", ".join(dict.fromkeys(each.context for each in found.candidates)) or found.context
    print(render.plain(f"{found.run}{name} on {places}: {found.state}"))
    if found.cause is not None:
        _print_cause(found.cause, about=_about_job(found))
    elif found.pending is not None:
        if found.state == "running":
            print("some of its tasks are in the queue")
        _print_pending(found.pending)
    elif found.unused is not None:
        _print_cause(found.unused)
    elif not found.groups:
        print(render.plain(found.reason or _fine(found.state)))
    for each in found.candidates:
        place = f"{each.context}{f' ({each.partition})' if each.partition else ''}"
        print(render.plain(f"where: {place}: {render.with_reason(each.state, each.reason)}"))
    for group in found.groups:
        print()
        count = len(group.tasks)
        numbers = ", ".join(map(str, group.tasks[:SHOWN])) + (", …" if count > SHOWN else "")
        print(f"{render.count(count, 'task')} ({numbers}):")
        _print_cause(group.cause)
    if found.unread:
        print(f"\n{render.count(found.unread, 'more failed task')} not looked at")


def _fine(state: str) -> str:
    return "nothing is wrong with it" if state in ("completed", "running", "starting") else "no reason is known"


def _about_job(found: Explanation) -> list[tuple[str, str]]:
    """Return what is known about the job, the node and the predecessors of a failed run."""
    node = [("node", node_line(found.node))] if found.node is not None and found.cause is not None else []
    after = [("after", _awaited(each)) for each in found.after]
    return [*after, *node, ("admin", found.admin_comment), ("slurm", found.system_comment)]


def _print_lines(lines: Sequence[tuple[str, str]]) -> None:
    for label, text in lines:
        if text:
            print(render.plain(f"{label + ':':<6} {text}"))


def node_line(node: NodeTrouble) -> str:
    """Return a node that is down or drained, with its reason."""
    since = f" since {render.moment(node.since)}" if node.since is not None else ""
    return f"{node.node} is {node.state}{since}: {node.reason or 'no reason given'}"


def _print_cause(cause: Cause, about: Sequence[tuple[str, str]] = ()) -> None:
    print(render.plain(f"cause: {cause.sentence}"))
    if cause.line and cause.line not in cause.traceback:
        print(render.plain(f"log:   {cause.line}"))
    _print_lines(about)
    if cause.advice:
        print(render.plain(f"help:  {cause.advice}"))
    if cause.retry:
        print(render.plain(f"type:  {cause.retry}"))
    if cause.traceback:
        print()
        for line in cause.traceback.splitlines():
            print(render.plain(f"  {line}"))


def _print_pending(found: Pending) -> None:
    native = f" (Slurm: {found.native})" if found.native else ""
    print(render.plain(f"cause: {found.sentence}{native}"))
    _print_lines(pending_lines(found))
    if found.advice:
        print(render.plain(f"help:  {found.advice}"))


def pending_lines(found: Pending) -> list[tuple[str, str]]:
    """Return what is known about a run that waits, as labels and texts; empty texts are not printed."""
    start = ""
    if found.starts_at is not None:
        left = found.starts_at - time.time()
        start = f"expected at {render.moment(found.starts_at)}" + (f", in {render.span(left)}" if left > 0 else "")
    return [
        *(("limit", each) for each in found.limits),
        *(("after", _awaited(each)) for each in found.after),
        *(("node", node_line(each)) for each in found.nodes),
        *(("maint", _maintenance(each)) for each in found.maintenance),
        ("admin", found.admin_comment),
        ("slurm", found.system_comment),
        ("queue", _place(found)),
        ("free", _free(found)),
        ("start", start),
        ("since", f"submitted {render.span(found.waited)} ago" if found.waited is not None else ""),
    ]


def _awaited(each: Awaited) -> str:
    if each.state is None:
        return f"run {each.run}, which this machine does not know"
    if each.state in FINAL and not each.ended:
        return f"run {each.run} has not completed: {each.state}"
    return f"run {each.run} is {each.state}; this one follows when it has {'ended' if each.ended else 'completed'}"


def _maintenance(each: Reservation) -> str:
    ends = f" until {render.moment(each.ends_at)}" if each.ends_at is not None else ""
    begins = "is active" if each.active else f"begins at {render.moment(each.starts_at)}"
    return f"reservation {each.name} {begins}{ends}, on {render.count(each.node_count, 'node')}"


def _place(found: Pending) -> str:
    if found.place is None:
        return ""
    ahead = found.place - 1
    yours = ""
    if found.yours_ahead:
        yours = f", {found.yours_ahead} of them yours" if found.yours_ahead < ahead else " (yours)"
    where = f" in partition {found.partition}" if found.partition else ""
    return (f"{render.count(ahead, 'job')} ahead of it{yours}" if ahead else "it is next") + where


def _free(found: Pending) -> str:
    if found.free_cpus is None:
        return ""
    gpus = f" and {render.count(found.free_gpus, 'GPU')}" if found.free_gpus is not None else ""
    where = f" in partition {found.partition}" if found.partition else ""
    return f"{render.count(found.free_cpus, 'CPU')}{gpus}{where}"
