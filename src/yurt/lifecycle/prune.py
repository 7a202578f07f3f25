"""prune: remove run folders and unused environments from their sites. The runs stay in the index on this machine.

Never removes a run that has not finished according to its site, nor, unless requested, the only copy of results.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.errors import RefusedError, YurtError
from yurt.lifecycle import prune_envs
from yurt.lifecycle.files.missing_copies import Missing, describe, missing_copies
from yurt.lifecycle.last_jobs import observe_until_left
from yurt.lifecycle.prune_envs import PrunedEnv
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import task_entries, which
from yurt.lifecycle.steps import STEPS
from yurt.model import layout
from yurt.model.files import NOTHING, Survey, count
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Run, Status
from yurt.model.state import Observation
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files


REMOVED = "its folder is already removed"

MOST = 8
"""How many kept runs a warning names."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose folder may be removed."""

    id: str
    name: str = ""
    context: str
    project: str
    state: str
    ended: float | None
    created: float
    size: int
    """Size of the run folder on the site, in bytes."""
    files: int
    """Number of files in its outputs and checkpoints, and of those that it wrote into its working directory."""
    fetched: bool
    """Whether this machine has a copy of all of them."""
    kept: str
    """Why the folder is kept; empty if it is removed."""


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """The runs and environments that are removed, or would be, and the runs that are kept."""

    done: bool
    """Whether the folders were removed; false for a dry run."""
    removed: list[Candidate]
    kept: list[Candidate]
    environments: list[PrunedEnv] = []
    """Environments that nobody has used for a while, and uploaded wheels that no other environment needs."""


def survey(
    names: Sequence[str] = (),
    *,
    context: str = "",
    states: Sequence[str] = (),
    older_than: float | None = None,
    unfetched: bool = False,
    watch: Watch = unwatched,
) -> Result[Pruned]:
    """Find the folders to remove: of the runs named, else of all finished runs. Removes nothing.

    Raises if a site cannot be queried. Runs whose context was removed are skipped, with a warning, unless they or their
    context are named. `older_than` is in seconds. `unfetched`: include the only copy of results. Environments are
    included unless runs or states are given.
    """
    index = folders.store()
    named = which(index, names)
    entries = _select(index, named, context=context, states=states, older_than=older_than)
    skipped = {} if named or context else _of_removed_contexts(entries)
    entries = [entry for entry in entries if entry.run.id not in skipped]
    found = _judged(index, entries, unfetched=unfetched, named=bool(named), watch=watch)
    going, staying = [each for each in found if not each.kept], [each for each in found if each.kept]
    warnings = _skipped_in_words(skipped)
    unused: list[PrunedEnv] = []
    if not named and not states:
        unused, unread = prune_envs.survey(index, context=context, older_than=older_than, watch=watch)
        warnings += unread
    pruned = Pruned(done=False, removed=going, kept=staying, environments=unused)
    return Result(kind="runs-pruned", data=pruned, warnings=warnings)


def remove(
    found: Pruned, *, named: bool = False, older_than: float | None = None, watch: Watch = unwatched
) -> Result[Pruned]:
    """Remove the folders that `survey` found. Safe to retry, and to kill at any point.

    Sites where a folder could not be removed are warnings and set the exit code; if none was removed, the first error
    is raised. So are, if the user `named` the runs, those that are kept.
    """
    index = folders.store()
    errors = _remove(index, found.removed, watch=watch)
    removed = index.all_gone(each.id for each in found.removed)
    gone = [each for each in found.removed if each.id in removed]
    unused, others = prune_envs.remove(index, found.environments, older_than=older_than, watch=watch)
    errors += others
    if errors and not gone and not unused:
        raise errors[0]
    codes = [error.exit_code for error in errors]
    warnings = [error.message for error in errors]
    refused = [each.id for each in found.kept if each.kept != REMOVED] if named else []
    if refused:
        codes.append(RefusedError.exit_code)
        warnings.append(f"kept {', '.join(refused[:MOST])}" + (" …" if len(refused) > MOST else ""))
    return Result(
        kind="runs-pruned",
        data=Pruned(done=True, removed=gone, kept=found.kept, environments=unused),
        warnings=warnings,
        exit_code=max(codes, default=0),
    )


def _select(
    store: Store,
    named: Sequence[Entry],
    *,
    context: str,
    states: Sequence[str],
    older_than: float | None,
) -> list[Entry]:
    """Return the named runs, else all finished ones, that match the filters, oldest first."""
    where: dict[str, Sequence[str]] = {"context": [context]} if context else {}
    every = store.newest(where=where, candidates=True) if not named else iter(_with_candidates(store, named))
    found = [entry for entry in every if named or entry.status.final]
    since = None if older_than is None else time.time() - older_than
    gone = set() if named else store.all_gone(entry.run.id for entry in found)
    kept = [
        entry
        for entry in found
        if (not context or entry.run.context == context)
        and (not states or entry.status.state in states)
        and (since is None or (entry.status.ended or entry.run.created) < since)
        and entry.run.id not in gone
    ]
    return sorted(kept, key=lambda entry: entry.run.created)


def _with_candidates(store: Store, named: Sequence[Entry]) -> list[Entry]:
    """Return runs with each race replaced by its candidates, which have the folders."""
    found: list[Entry] = []
    for entry in named:
        names = store.candidates(entry.run.id) if entry.run.race == entry.run.id else []
        found += store.several(names) if names else [entry]
    return found


def _judged(store: Store, entries: Sequence[Entry], *, unfetched: bool, named: bool, watch: Watch) -> list[Candidate]:
    """Query the sites and judge each run. Raises if a site cannot be queried: then nothing may be removed."""
    places = sorted({entry.run.context for entry in entries})
    watch(Event(f"querying {', '.join(places)}"))

    ended = [entry.run.id for entry in entries if entry.status.exit_code is not None and _is_single(entry.run)]
    known = set(ended)
    also = [entry.run.sweep or entry.run.id for entry in entries if entry.run.id not in known]

    def query() -> dict[str, Observation]:
        refreshed = refresh_contexts(store, places, also=also, ended=ended, watch=watch, steps=STEPS)
        for error in refreshed.failed.values():
            raise _nothing_removed(error)
        return refreshed.seen

    def finished() -> list[str]:
        return [each.run.id for each in store.several([entry.run.id for entry in entries]) if each.status.final]

    seen = observe_until_left(query, finished, watch)
    now = {entry.run.id: entry for entry in store.several([entry.run.id for entry in entries])}
    found: list[Candidate] = []
    for name in places:
        watch(Event(f"measuring runs on {name}"))
        group = [now.get(entry.run.id, entry) for entry in entries if entry.run.context == name]
        measured = _measure(connect.named_files(name), [entry.run for entry in group])
        for entry in group:
            has = measured[entry.run.id]
            if has.what == "gone":
                _note_removed(store, entry.run.id)
                if not named:
                    continue
            found.append(judge(store, entry, has, seen.get(entry.run.id), unfetched=unfetched))
    return found


def _is_single(run: Run) -> bool:
    """Return whether a run is neither a sweep nor a task."""
    return not run.tasks and run.task is None


def _of_removed_contexts(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the runs, with their contexts, whose context is not in contexts.yaml any more."""
    known = contexts.load(contexts.default_file())
    found = {entry.run.id: entry.run.context for entry in entries}
    return {run: name for run, name in found.items() if name not in known.contexts and name not in known.invalid}


def _skipped_in_words(skipped: dict[str, str]) -> list[str]:
    if not skipped:
        return []
    runs = "1 run" if len(skipped) == 1 else f"{len(skipped)} runs"
    return [f"skipped {runs} whose context was removed ({', '.join(sorted(set(skipped.values())))})"]


def _nothing_removed(error: YurtError) -> YurtError:
    error.message += "; nothing was removed"
    return error


def _measure(files: Files, runs: Sequence[Run]) -> dict[str, Survey]:
    placed = [run for run in runs if run.folder]  # others were never submitted
    found = files.survey([run.folder for run in placed]) if placed else []
    gone = Survey("gone")
    return dict.fromkeys((run.id for run in runs), gone) | dict(zip((run.id for run in placed), found, strict=True))


def judge(store: Store, entry: Entry, has: Survey, seen: Observation | None, *, unfetched: bool) -> Candidate:
    """Decide whether a run's folder may be removed, and if not, why."""
    run, status = entry.run, entry.status
    missing = missing_copies(store, run.id, has)
    kept = _kept(run, status, has, seen)
    clash = any(NOTHING not in (found.outputs, found.work) for _run, found in has.results(run.id))
    kept = kept or ("" if unfetched or has.what == "going" else _only_copy(run, missing, clash=clash))
    return Candidate(
        id=run.id,
        name=run.name,
        context=run.context,
        project=run.project,
        state=status.state,
        ended=status.ended,
        created=run.created,
        size=has.size,
        files=sum(count(each) for _run, found in has.results(run.id) for each in found.by_part().values()),
        fetched=not missing,
        kept=kept,
    )


def _kept(run: Run, status: Status, has: Survey, seen: Observation | None) -> str:
    if run.task is not None:  # its folder contains its gate, which a late job of the sweep must find closed
        return f"a task is removed with its sweep; run `yurt prune {run.sweep}`"
    if not status.final:
        return f"it has not finished ({status.state})"
    if has.what == "gone":
        return REMOVED
    if has.what == "foreign":
        return "its folder was not created by yurt or has been replaced"
    if has.what == "there" and (seen is None or seen.live is not None):
        return f"it still has a job on {run.context}"
    return ""


def _only_copy(run: Run, missing: Missing, *, clash: bool) -> str:
    """Return why a run is kept. `clash`: it has outputs and files in its working directory; those that have the same
    names are fetched only with --all."""
    if not missing:
        return ""
    parts = {part for each in missing.values() for part in each}
    all_option = " --all" if layout.CHECKPOINTS in parts or (clash and layout.OUTPUTS not in parts) else ""
    return f"{describe(run, missing)}; run `yurt fetch {run.id}{all_option}`"


def _remove(store: Store, candidates: Sequence[Candidate], *, watch: Watch) -> list[YurtError]:
    """Remove run folders, with one request for each context. Returns the errors of sites where a folder is left."""
    errors: list[YurtError] = []
    for name in sorted({each.context for each in candidates}):
        group = [each for each in candidates if each.context == name]
        watch(Event(f"removing runs from {name} ({len(group)})"))
        try:
            _remove_from(store, connect.named_files(name), group)
        except YurtError as error:
            errors.append(error)
    return errors


def _remove_from(store: Store, files: Files, candidates: Sequence[Candidate]) -> None:
    """Remove run folders; the only function that does. First saves their logs and metrics on this machine."""
    entries = store.several([each.id for each in candidates])
    archive.bring_all(store, files, with_tasks(store, entries))
    runs = [entry.run for entry in entries]
    store.note_going([run.id for run in runs], time.time())
    removed = files.remove([run.folder for run in runs])
    store.note_gone(removed.gone, time.time())
    left = sorted({run.id for run in runs} - set(removed.gone))
    if not left:
        return
    # Another yurt process may have removed some of them.
    measured = _measure(files, [run for run in runs if run.id in left])
    still = [run for run, has in measured.items() if has.what != "gone"]
    store.note_gone(set(left) - set(still), time.time())
    if still:
        runs_left = f"could not remove {'run' if len(still) == 1 else 'runs'} {', '.join(still)}"
        if removed.failed is None:
            raise RefusedError(f"{candidates[0].context}: {runs_left}", code="site-refused")
        removed.failed.message += f"; {runs_left}"
        raise removed.failed


def with_tasks(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Return the runs, and the started tasks of the sweeps among them."""
    sweeps = [entry for entry in entries if entry.run.tasks]
    begun = [[n for n, status in store.tasks(entry.run.id).items() if status.started] for entry in sweeps]
    return [*entries, *task_entries(store, list(zip(sweeps, begun, strict=True)))]


def _note_removed(store: Store, run: str) -> None:
    """Record that a folder is gone, if yurt began to remove it and was interrupted."""
    at = store.going_since(run)
    if at is not None:
        store.note_gone([run], at)
