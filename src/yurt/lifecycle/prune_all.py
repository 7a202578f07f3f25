"""prune --all: remove everything that yurt, on any machine, created on a context. Other files are kept."""

from __future__ import annotations

import time

import msgspec

from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.errors import RefusedError
from yurt.lifecycle.files.missing_copies import missing_copies
from yurt.lifecycle.last_jobs import observe_until_left
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import with_tasks
from yurt.lifecycle.steps import STEPS
from yurt.model import ids
from yurt.model.context import Context
from yurt.model.files import Held
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import RunRef
from yurt.store import Store


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one project on a context."""

    project: str
    runs: int
    size: int
    """Size in bytes, including its code."""


class Cleared(msgspec.Struct, frozen=True, kw_only=True):
    """yurt's files on a context that were removed, or would be."""

    done: bool
    """Whether they were removed; false for a dry run."""
    context: str
    folder: str
    projects: list[Holding]
    runs: list[str]
    left: list[str] = []
    """Folders that are kept: they contain files that yurt did not create, new files, or the backups of dev nodes."""


def survey(name: str, *, unfetched: bool = False, watch: Watch = unwatched) -> Result[Cleared]:
    """Find the files to remove. RefusedError: a run has not finished, or the context has the only copy of results."""
    store = folders.store()
    context = contexts.site(name)
    watch(Event(f"querying {name}"))
    refreshed = refresh_contexts(store, [name], steps=STEPS)
    for error in refreshed.failed.values():
        raise error
    base, projects, runs = _list(context)
    _check_finished(store, context, runs, watch)
    if not unfetched:
        _check_copies(store, name, runs)
    found = Cleared(done=False, context=name, folder=base, projects=projects, runs=[run.folder for run in runs])
    return Result(kind="context-cleared", data=found)


def _list(context: Context) -> tuple[str, list[Holding], list[Held]]:
    base = folders.base_folder(context, facts_if_probed(context))
    found = connect.backend(context).files.holdings(base)
    runs = found.runs
    above = f"{base}/projects/"
    projects = [
        Holding(
            project=path.removeprefix(above),
            runs=sum(run.folder.startswith(f"{path}/") for run in runs),
            size=size,
        )
        for path, size in sorted(found.sizes.items())
        if path.startswith(above) and "/" not in path.removeprefix(above)
    ]
    return base, projects, runs


def _check_finished(store: Store, context: Context, runs: list[Held], watch: Watch) -> None:
    every = store.newest(where={"context": [context.name]}, unfinished=True, candidates=True)
    unfinished = {entry.run.id for entry in every}
    refs = [RunRef(run.id, run.folder, ids.made_at(run.id)) for run in runs]
    observe = connect.backend(context).runs.observe
    ended = {run.id for run in runs if run.ended} - unfinished
    seen = observe_until_left(lambda: observe(refs).runs, lambda: ended, watch) if refs else {}
    unfinished |= {run for run, each in seen.items() if each.live is not None}
    # A run that is not in the index counts as unfinished, unless its folder or Slurm accounting says that it finished.
    unfinished |= {
        run.id
        for run in runs
        if not run.ended and store.get(run.id) is None and (run.id not in seen or seen[run.id].record is None)
    }
    if unfinished:
        raise RefusedError(
            f"runs on {context.name} have not finished: {_named(unfinished)}; nothing was removed",
            code="run-not-finished",
            hint=f"wait for them, or cancel them with `yurt cancel {_words(unfinished)}`{_repeat(unfinished)}",
        )


def _check_copies(store: Store, name: str, runs: list[Held]) -> None:
    alone = {run.id for run in runs if missing_copies(store, run.id, run.survey)}
    if alone:
        raise RefusedError(
            f"{name} has the only copy of the results of {_named(alone)}; nothing was removed",
            code="only-copy",
            hint=f"download them with `yurt fetch --all {_words(alone)}`{_repeat(alone)},"
            " or add `--unfetched` to remove them anyway",
        )


MOST = 8
"""How many runs a message and its hint name."""


def _named(runs: set[str]) -> str:
    return ", ".join(sorted(runs)[:MOST]) + (f" and {len(runs) - MOST} more" if len(runs) > MOST else "")


def _words(runs: set[str]) -> str:
    """Return the runs that the message names, for a command in its hint."""
    return " ".join(sorted(runs)[:MOST])


def _repeat(runs: set[str]) -> str:
    return " and repeat this command for the others" if len(runs) > MOST else ""


def remove(found: Cleared, *, watch: Watch = unwatched) -> Result[Cleared]:
    """Remove the files that `survey` found. Safe to retry, and to kill at any point."""
    store = folders.store()
    context = contexts.site(found.context)
    files, facts = connect.backend(context).files, facts_if_probed(context)
    home = folders.env_folders(context, facts).get("home", "") if facts is not None else ""
    entries = [entry for folder in found.runs if (entry := store.get(folder.rpartition("/")[2])) is not None]
    archive.bring_all(store, files, with_tasks(store, entries))
    known = [entry.run.id for entry in entries]
    store.note_going(known, time.time())
    watch(Event(f"removing runs from {found.context} ({len(found.runs)})"))
    removed = files.clear(found.folder, found.runs, home)
    store.note_gone([run for run in removed.gone if run in known], time.time())
    if removed.failed is not None:
        raise removed.failed
    return Result(kind="context-cleared", data=msgspec.structs.replace(found, done=True, left=removed.left))
