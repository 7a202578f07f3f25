"""import: the runs that a context's storage holds become known here, whichever machine made them.

What the index knows already is neither overwritten nor removed. Nothing on the site is changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.errors import NotFoundError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.model import ids, layout
from yurt.model.context import Context
from yurt.model.files import Gathered
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Run, Status
from yurt.model.state import ATTEMPTS, CANCELLED
from yurt.model.verdict import adopt, read_verdict
from yurt.sites import connect, folders
from yurt.sites.facts import facts_if_probed
from yurt.store import Found, older
from yurt.verbs import import_sweeps
from yurt.verbs.result import Result
from yurt.verbs.steps import STEPS

if TYPE_CHECKING:
    from yurt.backends.base import Files

OTHERS = "it has not ended, and a yurt with another data folder looks after it"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an import."""

    context: str
    new: list[str]
    known: int
    """How many of those found were known here already."""
    unreadable: dict[str, str]
    """Folders that could not be understood, and why."""


def import_(name: str, *, project: str = "", watch: Watch = unwatched) -> Result[Imported]:
    """Take in what a context's storage holds, of one project or of all. Folders left out are warnings."""
    store = folders.store()
    context = contexts.named(name)
    facts = facts_if_probed(context, watch=watch)
    base = folders.base_folder(context, facts)
    files = connect.backend(context).files
    watch(Event(f"listing the runs on {context.name}"))
    there = _listed(files, context.name, base, project)
    unknown = [folder for folder in there if store.get(folder.rpartition("/")[2]) is None]
    new: list[str] = []
    unreadable: dict[str, str] = {}
    reader = _Reader(context)
    for batch in _gathered(files, unknown, context.name, watch):
        read = {folder: reader.read(folder, said) for folder, said in batch.items()}
        sweeps = {folder: each for folder, each in read.items() if isinstance(each, Found) and each.run.tasks}
        tasks = import_sweeps.tasks_of(files, {folder: each.run.tasks for folder, each in sweeps.items()})
        for folder, each in sweeps.items():
            read[folder] = reader.with_tasks(each, batch[folder] or Gathered(), tasks[folder])
        unreadable |= {folder: why for folder, why in read.items() if isinstance(why, str)}
        found = [each for each in read.values() if isinstance(each, Found)]
        reader.contexts.update(each.run.context for each in found)
        new += store.add_found(found)
    warnings = [f"left out {folder}: {why}" for folder, why in unreadable.items()]
    if new:
        warnings += refresh_contexts(store, sorted(reader.contexts), watch=watch, steps=STEPS).warnings
    done = Imported(context=context.name, new=new, known=len(there) - len(unknown), unreadable=unreadable)
    return Result(kind="runs-imported", data=done, warnings=warnings)


def _listed(files: Files, name: str, base: str, project: str) -> list[str]:
    """The folders of all runs there are; of one project, if it is named, with its short id or without."""
    there = files.list_runs(base)
    if there is None:
        raise NotFoundError(
            f"there are no runs on {name}: it has no folder {base}/projects",
            code="not-found",
            hint=f"yurt context show {name} --resolved",
        )
    found = []
    labels = set[str]()
    for folder in there:
        label, _, below = folder.removeprefix(f"{base}/projects/").partition("/")
        kind, _, run = below.partition("/")
        labels.add(label)
        if (ids.is_sweep if kind == "sweeps" else ids.is_id)(run) and project in ("", label, label.rpartition("-")[0]):
            found.append(folder)
    if project and not found:
        raise NotFoundError(
            f"there are no runs of a project '{project}' on {name}",
            code="not-found",
            hint=f"it has runs of {', '.join(sorted(labels)[:8])}" if labels else "",
        )
    return found


def _gathered(files: Files, folders: Sequence[str], name: str, watch: Watch) -> Iterator[dict[str, Gathered | None]]:
    """What each folder says, in as few trips as its size allows; None of one that could not be read."""
    at = 0
    while at < len(folders):
        watch(Event(f"reading the runs on {name}", at, len(folders)))
        came, asked = files.gather(folders[at:])
        yield came
        at += asked


class _Reader:
    """Makes runs of what their folders say."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.contexts: set[str] = set()
        """Those that the runs belong to."""
        self._known = contexts.load(contexts.default_file()).contexts
        # A run of this machine's that a yurt with another data folder looks after is in no slot of ours.
        here = kind_of(context.type).here
        self._elsewhere = here and bool(context.storage_dir)
        self._slots = {run.partition(".")[0] for run in connect.slots()}
        # Whoever made a run may be about to send it: from another machine it is not sent a second time.
        self._attempts = 1 if here and not self._elsewhere else ATTEMPTS

    def read(self, folder: str, said: Gathered | None) -> Found | str | None:
        """A run as it is to stand in the index; or why it cannot; None for what is no run, or no longer.

        Of a sweep, how it stands is not known yet.
        """
        if said is None:
            return "it is too large to be read"
        winner = said.text(layout.WINNER)
        if layout.RUN not in said.files:
            return None if winner == CANCELLED or layout.CANCEL in said.files else f"it has no {layout.RUN}"
        try:
            run = older.read_run(said.files[layout.RUN])
            plan = older.read_plan(said.files.get(layout.PLAN, b""))
        except msgspec.MsgspecError as error:
            return f"this yurt does not understand it ({error}); did a newer one make it?"
        if run.id != folder.rpartition("/")[2] or run.context_type != self.context.type:
            return f"it says that it is run {run.id} on a context of type {run.context_type}"
        run = msgspec.structs.replace(run, context=self._context_of(run))
        plan = None if plan is None else msgspec.structs.replace(plan, run=run)
        if run.tasks:
            whole = plan is not None and len(plan.sets) == run.tasks
            return Found(run, Status(), plan) if whole else "its plan.json is not whole"
        status = self._status(run, said)
        ended = status.final or winner == CANCELLED or layout.EXIT in said.files
        return OTHERS if not ended and self._is_others(run) else Found(run, status, plan)

    def with_tasks(self, found: Found, said: Gathered, begun: dict[int, Gathered]) -> Found | str:
        """A sweep, and how it and its tasks stand; or why it cannot be imported."""
        whole, rows = import_sweeps.statuses(found.run, said, begun, self._attempts, time.time())
        ended = len(rows) == found.run.tasks and all(each.final for each in rows.values())
        if not ended and "cancel" not in said.files and self._is_others(found.run):
            return OTHERS
        return Found(found.run, whole, found.plan, rows)

    def _is_others(self, run: Run) -> bool:
        return self._elsewhere and run.id not in self._slots

    def _context_of(self, run: Run) -> str:
        """The context it was made on, if that is the same place by another name; else the one that is imported."""
        own = self._known.get(run.context)
        same = own is not None and (own.type, own.slurm_url) == (self.context.type, self.context.slurm_url)
        return run.context if same else self.context.name

    def _status(self, run: Run, said: Gathered) -> Status:
        """How it stood when its folder was read; a look tells the rest."""
        starts = said.starts
        started = (said.text(f"{layout.START}{starts}") or said.text(layout.WINNER)).split(".")
        status = Status(
            state="running" if starts else "queued",
            submitted=said.made or run.created,
            restarts=max(starts - 1, 0),
            job=started[1] if len(started) > 1 else "",
            attempts=self._attempts,
        )
        return adopt(status, read_verdict(said.files.get(layout.STATUS, b"")), None, run.created)
