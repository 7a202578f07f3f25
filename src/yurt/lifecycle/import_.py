"""import: add the runs in a context's storage to the index, from any machine.

Runs that are in the index already are neither changed nor removed. Nothing on the site is changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import render
from yurt.cli.completers import context_names
from yurt.cli.declare import argument, option, verb
from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.project import code_folder
from yurt.errors import NotFoundError, one_of
from yurt.lifecycle import import_sweeps
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.steps import STEPS
from yurt.model import ids, layout
from yurt.model.context import Context
from yurt.model.files import Gathered
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Run, Status
from yurt.model.site_words import LATEST, MALFORMED, FileName, TreeId, shown
from yurt.model.state import ATTEMPTS, CANCELLED
from yurt.model.verdict import adopt, read_verdict
from yurt.store import Entry, Found, Store, older

if TYPE_CHECKING:
    from yurt.backends.base import Files


OTHERS = "it has not finished and belongs to a yurt installation with a different data folder"


IMPOSSIBLE = (*MALFORMED, LookupError, ArithmeticError)
"""What parsers raise about records that no yurt has written."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import."""

    context: str
    new: list[str]
    known: int
    """How many of the runs found were in the index already."""
    unreadable: dict[str, str]
    """Folders that could not be imported, with the reason."""


def import_(name: str, *, project: str = "", watch: Watch = unwatched) -> Result[Imported]:
    """Import the runs in a context's storage, of one project or of all. Skipped folders are warnings."""
    store = folders.store()
    context = contexts.site(name)
    facts = facts_if_probed(context, watch=watch)
    base = folders.base_folder(context, facts)
    files = connect.backend(context).files
    watch(Event(f"listing the runs on {context.name}"))
    listed = _listed(files, context.name, base, project)
    unknown = [folder for folder in listed if store.get(folder.rpartition("/")[2]) is None]
    new: list[str] = []
    unreadable: dict[str, str] = {}
    reader = _Reader(context)
    for batch in _gathered(files, unknown, context.name, watch):
        read = {folder: reader.read(folder, gathered) for folder, gathered in batch.items()}
        sweeps = {folder: each for folder, each in read.items() if isinstance(each, Found) and each.run.tasks}
        tasks = import_sweeps.tasks_of(files, {folder: each.run.tasks for folder, each in sweeps.items()})
        for folder, each in sweeps.items():
            read[folder] = reader.with_tasks(each, batch[folder] or Gathered(), tasks[folder])
        unreadable |= {folder: why for folder, why in read.items() if isinstance(why, str)}
        found = [each for each in read.values() if isinstance(each, Found)]
        reader.contexts.update(each.run.context for each in found)
        new += store.add_found(found)
    warnings = [f"skipped {folder}: {why}" for folder, why in unreadable.items()]
    if new:
        warnings += refresh_contexts(store, sorted(reader.contexts), watch=watch, steps=STEPS).warnings
    done = Imported(context=context.name, new=new, known=len(listed) - len(unknown), unreadable=unreadable)
    return Result(kind="runs-imported", data=done, warnings=warnings)


def import_run(store: Store, context: Context, run: str) -> Entry | None:
    """Import one run from a context's storage; None if it is not there, or not readable. Does not refresh it."""
    if (known := store.get(run)) is not None:
        return known
    files = connect.backend(context).files
    every = files.list_runs(folders.base_folder(context, facts_if_probed(context))) or []
    where = [folder for folder in every if folder.rpartition("/")[2] == run]
    gathered, _count = files.gather(where[:1]) if where else ({}, 0)
    found = [_Reader(context).read(folder, each) for folder, each in gathered.items()]
    store.add_found([each for each in found if isinstance(each, Found)])
    return store.get(run)


def _listed(files: Files, name: str, base: str, project: str) -> list[str]:
    """Return the folders of all runs, or of one project, named with or without its short id."""
    folders = files.list_runs(base)
    if folders is None:
        raise NotFoundError(
            f"no runs found on {name}: folder {base}/projects does not exist",
            code="not-found",
            hint=f"check whether its disk is mounted, and `storage_dir` with `yurt context show {name} --resolved`",
        )
    found = []
    labels = set[str]()
    for folder in folders:
        label, _, below = folder.removeprefix(f"{base}/projects/").partition("/")
        kind, _, run = below.partition("/")
        labels.add(label)
        if (ids.is_sweep if kind == "sweeps" else ids.is_id)(run) and project in ("", label, label.rpartition("-")[0]):
            found.append(folder)
    if project and not found:
        raise NotFoundError(
            f"no runs of project '{project}' found on {name}",
            code="not-found",
            hint=f"use {one_of(f'--project {label}' for label in sorted(labels)[:8])}" if labels else "",
        )
    return found


def _gathered(files: Files, folders: Sequence[str], name: str, watch: Watch) -> Iterator[dict[str, Gathered | None]]:
    """Yield the contents of the folders, in as few transfers as their size allows; None for a folder too large."""
    at = 0
    while at < len(folders):
        watch(Event(f"reading the runs on {name}", at, len(folders)))
        gathered, count = files.gather(folders[at:])
        yield gathered
        at += count


def _wrong(run: Run, folder: str, kind: str) -> str:
    """Return why a record is not of the run in this folder, or cannot be used on this machine; empty if it can.

    Its id and project become names of folders, its name and its snapshot arguments of programs.
    """
    if run.id != folder.rpartition("/")[2] or run.context_type != kind:
        return f"describes run {shown(run.id)} on a context of type {shown(run.context_type)}"
    words = {
        "id": ids.names_folder(run.id),
        "project": FileName.fits(run.project),
        "name": not run.name or FileName.fits(run.name.replace("/", "_")),
        "snapshot": not run.code.tree or TreeId.fits(run.code.tree),
        "time of creation": 0 <= run.created < LATEST,
    }
    wrong = next((word for word, fits in words.items() if not fits), "")
    return f"has an invalid {wrong}" if wrong else ""


class _Reader:
    """Makes index entries from the contents of run folders."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.contexts: set[str] = set()
        """The contexts of the imported runs."""
        self._known = contexts.load(contexts.default_file()).contexts
        # A local run that belongs to a yurt with another data folder has none of our slots.
        here = kind_of(context.type).here
        self._elsewhere = here and bool(context.storage_dir)
        self._slots = {run.partition(".")[0] for run in connect.slots()}
        # The machine that created a run may be about to submit it; with all attempts used, this one does not.
        self._attempts = 1 if here and not self._elsewhere else ATTEMPTS

    def read(self, folder: str, gathered: Gathered | None) -> Found | str | None:
        """Return the index entry of a run, like `_read`; the reason if something in its records is impossible."""
        try:
            return self._read(folder, gathered)
        except IMPOSSIBLE as error:
            return f"its records are damaged: {shown(str(error))}"

    def _read(self, folder: str, gathered: Gathered | None) -> Found | str | None:
        """Return the index entry of a run; the reason if it cannot be imported; None for a folder without a run.

        The entry of a sweep has no status yet.
        """
        if gathered is None:
            return "its files are too large"
        winner = gathered.text(layout.WINNER)
        if layout.RUN not in gathered.files:
            return None if winner == CANCELLED or layout.CANCEL in gathered.files else f"it has no {layout.RUN}"
        try:
            run = older.read_run(gathered.files[layout.RUN])
            plan = older.read_plan(gathered.files.get(layout.PLAN, b""))
        except MALFORMED as error:
            return f"this version of yurt cannot read it ({error}); it may be from a newer version"
        if wrong := _wrong(run, folder, self.context.type):
            return f"its {layout.RUN} {wrong}"
        # Not the recorded folder: the storage may have been moved, or the record changed.
        run = msgspec.structs.replace(run, context=self._context_of(run), folder=folder)
        if plan is not None:
            # Nor the recorded git folder: git runs commands that are configured in it.
            code, project = str(code_folder(run.project)), layout.project_of(folder)
            plan = msgspec.structs.replace(plan, run=run, project_folder=project, store=code, imported=True)
        if run.tasks:
            complete = plan is not None and len(plan.sets) == run.tasks
            return Found(run, Status(), plan) if complete else f"its {layout.PLAN} is incomplete"
        status = self._status(run, gathered)
        finished = status.final or winner == CANCELLED or layout.EXIT in gathered.files
        return OTHERS if not finished and self._is_others(run) else Found(run, status, plan)

    def with_tasks(self, found: Found, gathered: Gathered, begun: dict[int, Gathered]) -> Found | str:
        """Return a sweep with the status of the sweep and its tasks; or why it cannot be imported."""
        try:
            whole, rows = import_sweeps.statuses(found.run, gathered, begun, self._attempts, time.time())
        except IMPOSSIBLE as error:
            return f"its records are damaged: {shown(str(error))}"
        finished = len(rows) == found.run.tasks and all(each.final for each in rows.values())
        if not finished and "cancel" not in gathered.files and self._is_others(found.run):
            return OTHERS
        return Found(found.run, whole, found.plan, rows)

    def _is_others(self, run: Run) -> bool:
        return self._elsewhere and run.id not in self._slots

    def _context_of(self, run: Run) -> str:
        """Return the run's own context if it is configured here and has the same site; else the imported context."""
        own = self._known.get(run.context)
        same = own is not None and (own.type, own.slurm_url) == (self.context.type, self.context.slurm_url)
        return run.context if same else self.context.name

    def _status(self, run: Run, gathered: Gathered) -> Status:
        """Return the status according to the run folder; the next refresh updates it."""
        starts = gathered.starts
        started = (gathered.text(f"{layout.START}{starts}") or gathered.text(layout.WINNER)).split(".")
        status = Status(
            state="running" if starts else "queued",
            submitted=gathered.made or run.created,
            restarts=max(starts - 1, 0),
            job=started[1] if len(started) > 1 else "",
            attempts=self._attempts,
        )
        return adopt(status, read_verdict(gathered.files.get(layout.STATUS, b"")), None, run.created)


@verb(name="import", examples=["yurt import alpha", "yurt import alpha --project thesis"], context_help="")
@argument("name", metavar="CONTEXT", shell_complete=context_names)
@option("--project", metavar="NAME", default="", help="Import only runs of this project.")
def import_command(name: str, project: str) -> None:
    """Import the runs on a context into the local index.

    Use it for runs that you submitted from another machine, or after the index was lost. Imported runs can be
    followed, cancelled and retried like any other run. Runs already in the index are left unchanged.
    """
    from yurt.cli.progress import watching

    with watching() as watch:
        found = import_(name, project=project, watch=watch)

    def print_text() -> None:
        done = found.data
        unreadable = f", {len(done.unreadable)} unreadable" if done.unreadable else ""
        print(f"{done.context}: {len(done.new)} imported, {done.known} already in the index{unreadable}")

    render.result(found, print_text)
