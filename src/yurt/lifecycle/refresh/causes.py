"""Finds the causes of failed runs in what this machine has saved of them. No site is queried."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

import msgspec

from yurt.config import paths
from yurt.errors import YurtError
from yurt.lifecycle.causes import not_started
from yurt.lifecycle.causes.failed import Cause, Evidence, cause_of
from yurt.lifecycle.causes.rules import Rule, known, own
from yurt.model.run import FINAL, Resources, Status
from yurt.model.stage import lost_outputs
from yurt.model.state import LOST_OUTPUTS, read_ending
from yurt.model.waiting import EndedJob
from yurt.store import Entry, Mirrored, Store

_LOST = "your command succeeded; see `yurt storage` for full disks, fetch what there is with `yurt fetch RUN`"

NO_GPU = "no-gpu"
"""The name of the rule for a program that found no GPU."""

_ELSEWHERE = {"advice": "run it where there is one, with `yurt run --context NAME --gpus 1 …`", "retry": ""}

SECONDS = 2.0
"""Seconds of CPU time for which a refresh searches logs for causes. `why` and `show` find those of the other runs."""

NOTHING = EndedJob()


def has_failed(status: Status) -> bool:
    return status.state in FINAL and status.state not in ("completed", "cancelled")


def all_rules() -> Sequence[Rule]:
    """Return the rules of the user and those of yurt. UserError if the user's file is not valid."""
    return [*own(paths.config_home()), *known()]


def explained(
    entry: Entry, kept: Mirrored | None, rules: Sequence[Rule], site: EndedJob = NOTHING, *, brief: bool = False
) -> Cause:
    """Return the cause of a run that has not completed.

    `kept`: its saved logs; `site`: what its site says about it; `brief`: search only the ends of the logs.
    """
    out, err = ("", "") if kept is None else (kept.out.decode(errors="replace"), kept.err.decode(errors="replace"))
    ending = read_ending(kept.ending) if kept is not None else None
    run, status = entry.run, entry.status
    if ending is not None and ending.why:  # the job knows why its command did not start
        return Cause(name="not-started", sentence=ending.why, advice=not_started.advice(ending.why, run))
    if status.state == "failed" and status.exit_code == LOST_OUTPUTS and (lost := lost_outputs(run, status)):
        return Cause(name="outputs-not-copied", sentence=lost, advice=_LOST.replace("RUN", run.id))
    if not status.attempts and status.reason and status.state != "cancelled":  # it never started
        return Cause(name="rejected", sentence=status.reason)
    cause = cause_of(Evidence(run=run, status=status, out=out, err=err, site=site, brief=brief), rules)
    if cause.name == NO_GPU and run.context_type == "local" and _lacks_gpus(run.context):
        cause = msgspec.structs.replace(cause, sentence="the program found no GPU: this machine has none", **_ELSEWHERE)
    lost = lost_outputs(run, status)
    return msgspec.structs.replace(cause, sentence=f"{cause.sentence}; {lost}") if lost not in cause.sentence else cause


def _lacks_gpus(context: str) -> bool:
    """Return whether a context, which is this machine, refuses a run with a GPU."""
    from yurt.contexts import connect  # only for such a run

    return bool(connect.named_backend(context).runs.check(Resources(gpus=1), None, ""))


def record(store: Store, entries: Iterable[Entry]) -> None:
    """Record in their statuses why runs failed whose logs are saved. Never fails: where it cannot, the reason stays."""
    failed = [entry for entry in entries if has_failed(entry.status) and not entry.run.tasks]
    rules = _safe_rules() if failed else ()
    until = time.thread_time() + SECONDS
    found: dict[str, str] = {}
    for entry in failed:
        if time.thread_time() > until:
            break
        kept = store.kept(entry.run.id)
        try:
            cause = explained(entry, kept, rules, brief=True)
        except YurtError:  # a rule of the user is too slow
            rules = known()
            cause = explained(entry, kept, rules, brief=True)
        if words := cause.short(entry.status.reason):
            found[entry.run.id] = words
    if found:
        _note(store, failed, found)


def _safe_rules() -> Sequence[Rule]:
    """Return the rules that cannot stop a refresh: the user's only if they are valid and can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        return known()
    try:
        return all_rules()
    except YurtError:
        return known()


def _note(store: Store, entries: Iterable[Entry], found: dict[str, str]) -> None:
    runs = [entry.run.id for entry in entries if entry.run.id in found and entry.run.task is None]
    store.change(runs, lambda run, status: _with(status, found[run]))
    tasks: dict[str, dict[int, str]] = {}
    for entry in entries:
        if entry.run.id in found and entry.run.task is not None:
            tasks.setdefault(entry.run.sweep, {})[entry.run.task] = found[entry.run.id]
    for sweep, words in tasks.items():
        store.change_tasks(sweep, words, lambda number, status, words=words: _with(status, words[number]))  # type: ignore[misc]


def _with(status: Status, cause: str) -> Status:
    return msgspec.structs.replace(status, cause=cause) if status.final else status
