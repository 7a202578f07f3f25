"""fetch: download the results of runs, with rsync, or as tar streams if one side has no rsync."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import FILTER, folded
from yurt.config import paths
from yurt.errors import NotFoundError, UnreachableError, UserError, YurtError
from yurt.lifecycle.files import transfer
from yurt.lifecycle.files.transfer import Fetched, Wanted, shown
from yurt.lifecycle.outbox.pending import cancel_saved
from yurt.lifecycle.select import begun, by_sweep, which
from yurt.model.again import again
from yurt.model.files import Brought, Contents, count
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.run import Run
from yurt.store import Entry, Store
from yurt.store.site_copies import SiteCopy

if TYPE_CHECKING:
    from yurt.backends.base import Files


PROJECT_MARKS = ("yurt.yaml", "pyproject.toml", ".git")
"""A folder above the current one is that of a project only if it has one of these."""

MOST = 5
"""How many errors to report of runs that could not be fetched."""


class FetchedFiles(msgspec.Struct, frozen=True):
    """What was fetched, the errors of runs whose transfer is incomplete, and the runs in which no file matches."""

    done: list[Fetched]
    errors: list[YurtError]
    unmatched: list[Run]
    """Empty if no file of any run matches: that is an error."""


class FetchedRuns(Result[list[Fetched]], frozen=True, kw_only=True):
    """What was fetched, and which of these runs have not finished."""

    unfinished: frozenset[str]


def fetch(
    names: Sequence[str],
    *,
    filters: Sequence[str] = (),
    only: Sequence[str] = (),
    everything: bool = False,
    folder: Path | None = None,
    watch: Watch = unwatched,
) -> FetchedRuns:
    """Download the results of runs, and of the started tasks of sweeps; with filters, of the tasks that match.

    Runs that could not be fetched are warnings and set the exit code; if no run could be fetched, the first error is
    raised. Runs without a file that matches `only` are warnings, unless there is none that has one.
    """
    _check_working_folder(folder)
    index = Store(f"{paths.data_folder()}/yurt.db")
    entries, warnings = begun(index, names, filters, watch=watch)
    several = len(entries) > 1 or any(entry.run.tasks for entry in which(index, names))
    project = _project(folder) if folder is not None else None
    wanted = Wanted(only=only, everything=everything, folder=folder, several=several, project=project)
    for context in dict.fromkeys(entry.run.context for entry in entries):
        cancel_saved(index, context)
    found = fetch_runs(index, entries, wanted, watch=watch)
    done, errors, unmatched = found.done, found.errors, found.unmatched
    messages = _shortened([error.message for error in errors])
    if errors and not done:
        errors[0].message = "; ".join(messages)
        raise errors[0]
    code = max((error.exit_code for error in errors), default=0)
    empty = {each.id for each in done if not each.target}
    warnings += [_in_place(entry) for entry in entries if entry.run.id in empty and _ran_in_place(entry)]
    warnings += [transfer.no_match(unmatched, wanted).message] if unmatched else []
    warnings += [_hidden(each) for each in done if each.hidden]
    warnings += [_replaced(each) for each in done if each.replaced]
    unfinished = frozenset(entry.run.id for entry in entries if not entry.status.final)
    return FetchedRuns(
        kind="runs-fetched", data=done, warnings=[*warnings, *messages], exit_code=code, unfinished=unfinished
    )


def _check_working_folder(folder: Path | None) -> None:
    """UserError if the folder to fetch to is in the working directory, and somebody has removed that."""
    if folder is None or not folder.is_absolute():
        try:
            Path.cwd()
        except FileNotFoundError:
            from yurt.config.project import working_folder  # slow to import

            working_folder()


def _project(folder: Path) -> Path | None:
    """Return the folder of the user's project; None if `folder` is certainly not in it."""
    try:
        if _is_outside_projects(folder):
            return None
    except FileNotFoundError:  # the current folder no longer exists
        return None
    from yurt.contexts.project import Project  # slow to import

    return Project().folder.resolve()


def _is_outside_projects(folder: Path) -> bool:
    """Whether a folder is certainly not in the project of the current folder."""
    path, here = folder.resolve(), Path.cwd().resolve()
    above = [each for each in here.parents if any((each / name).exists() for name in PROJECT_MARKS)]
    return not any(path.is_relative_to(each) for each in (here, *above))


def _shortened(messages: list[str]) -> list[str]:
    return messages if len(messages) <= MOST else [*messages[:MOST], f"and {len(messages) - MOST} similar errors"]


def fetch_runs(store: Store, entries: Sequence[Entry], wanted: Wanted, *, watch: Watch = unwatched) -> FetchedFiles:
    """Download the results of runs, with as few transfers as possible for each context.

    Partial files of an incomplete transfer are kept; a retry continues from there.
    """
    by_context: dict[str, list[Entry]] = {}
    for entry in entries:
        by_context.setdefault(entry.run.context, []).append(entry)
    done: list[Fetched] = []
    errors: list[YurtError] = []
    unmatched: list[Run] = []
    for name, group in by_context.items():
        try:
            watch(Event(f"querying {name}"))
            files = cache(partial(_files, name))
            errors += _gone(store, [entry for entry in group if _never_sent(entry)])
            submitted = [entry for entry in group if not _never_sent(entry)]
            if not submitted:
                continue
            looked = _started(store, files, submitted, wanted, watch) or _found(store, files(), submitted)
            errors += _gone(store, looked.gone)
            for some in transfer.together(looked.found, wanted):
                try:
                    came, without = transfer.Transfer(store, files, some, wanted).run(watch, looked.already)
                    done += came
                    unmatched += without
                except UnreachableError:
                    raise
                except YurtError as error:
                    errors.append(error)
        except YurtError as error:  # give up on this context, continue with the others
            errors.append(error)
    places = {entry.run.id: at for at, entry in enumerate(entries)}
    if unmatched and not done:
        errors.append(transfer.no_match(unmatched, wanted))
        unmatched = []
    return FetchedFiles(sorted(done, key=lambda each: places[each.id]), errors, unmatched)


class _Looked(msgspec.Struct, frozen=True):
    """Runs with their contents, those that are gone, and what was fetched of a single run already."""

    found: list[transfer.Found]
    gone: list[Entry]
    already: Brought | None = None


def _files(context: str) -> Files:
    from yurt.contexts import connect  # slow to import; not needed for what was fetched early

    return connect.named_files(context)


def _started(
    store: Store, files: Callable[[], Files], entries: Sequence[Entry], wanted: Wanted, watch: Watch
) -> _Looked | None:
    """Look at a single run and fetch it in the same session; None if that is not possible."""
    here = kind_of(entries[0].run.context_type).here
    if len(entries) > 1 or here or wanted.everything or store.site_copy(entries[0].run.id) is not None:
        return None
    begun = transfer.Transfer(store, files, (), wanted).at_once(entries[0].run, watch)
    return None if begun is None else _Looked([(entries[0], begun[0])], [], begun[1])


def _found(store: Store, files: Files, entries: Sequence[Entry]) -> _Looked:
    """Return runs with their contents, and those that are gone.

    A run whose folder, or some of it, was deleted after `yurt storage keep` copied it is read from that copy.
    """
    contents = files.contents([entry.run.folder for entry in entries])
    copies: dict[str, Entry] = {}
    for entry in entries:
        copy = store.site_copy(entry.run.id)
        if copy is not None and _lacks(contents.get(entry.run.folder), copy):
            copies[entry.run.id] = Entry(msgspec.structs.replace(entry.run, folder=copy.path), entry.status)
    contents |= files.contents([entry.run.folder for entry in copies.values()]) if copies else {}
    found, gone = [], []
    for entry in entries:
        placed = copies.get(entry.run.id, entry)
        if placed.run.folder not in contents:
            placed = entry  # the copy is gone, too
        if placed.run.folder in contents:
            found.append((placed, contents[placed.run.folder]))
        else:
            gone.append(entry)
    return _Looked(found, gone)


def _lacks(contents: Contents | None, copy: SiteCopy) -> bool:
    """Whether a run folder is gone, or has fewer files than when it was copied."""
    if contents is None:
        return True
    now, then = contents.measures.by_part(), copy.measures.by_part()
    return any(measure and count(now[part]) < count(measure) for part, measure in then.items())


def _hidden(each: Fetched) -> str:
    one = each.hidden == 1
    what = "1 file has the same name" if one else f"{each.hidden} files have the same names"
    fetched = "only the one in the outputs was fetched" if one else "only those in the outputs were fetched"
    return (
        f"run {each.id}: {what} in its outputs and in its working directory; {fetched}."
        f" Fetch both with `yurt fetch {each.id} --all`"
    )


def _replaced(each: Fetched) -> str:
    what = "1 file of your project was" if each.replaced == 1 else f"{each.replaced} files of your project were"
    return f"{what} replaced by results of run {each.id}; the former content has a `~` at the end of its name"


def _ran_in_place(entry: Entry) -> bool:
    """Whether a run's command was started in the project folder of this machine (--no-snapshot)."""
    return kind_of(entry.run.context_type).here and not entry.run.code.tree and entry.run.task is None


def _in_place(entry: Entry) -> str:
    return f"run {entry.run.id} ran in {entry.run.source}; yurt does not know which files it wrote there"


def _never_sent(entry: Entry) -> bool:
    """Whether a run was certainly never submitted, so that its site does not have to be queried."""
    return not entry.run.folder or (entry.status.state in ("waiting", "submitting") and entry.status.attempts == 0)


def _gone(store: Store, entries: Sequence[Entry]) -> list[YurtError]:
    """Return the errors for runs without a folder on their site: one for all tasks of a sweep that `prune` removed."""
    errors: list[YurtError] = []
    for sweep, group in by_sweep(entries):
        removed_at = (store.gone_at(sweep) or store.going_since(sweep)) if sweep else None
        if removed_at is None or len(group) == 1:
            errors += [_gone_run(store, entry) for entry in group]
            continue
        context, hint = group[0].run.context, f"run it again with `yurt retry {sweep}`"
        text = f"sweep {sweep} cannot be fetched: {_pruned(context, removed_at)}"
        errors.append(NotFoundError(text + _copies(store, group), code="not-found", hint=hint))
    return errors


def _pruned(context: str, at: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    return f"`yurt prune` removed its folder from {context} on {when}"


def _copies(store: Store, entries: Sequence[Entry]) -> str:
    """Return where earlier copies of runs are; empty if there are none."""
    found = [Path(os.fsdecode(copy.target)) for entry in entries for copy in store.copies(entry.run.id)]
    there = [target for target in found if target.is_dir()]
    if not there:
        return ""
    if len(there) == 1 or len(entries) == 1:
        return f"; an earlier copy is in {shown(str(there[0]))}"
    return f"; earlier copies are in {shown(str(there[0].parent))}"


def _gone_run(store: Store, entry: Entry) -> YurtError:
    run, status = entry.run, entry.status
    at = store.gone_at(run.id) or store.going_since(run.id)
    if at is not None:
        why = _pruned(run.context, at)
    elif run.race and not run.folder:
        why = "no candidate of this race has started" + ("" if status.final else " yet")
    elif status.submitted is None and status.started is None:
        why = "it was never submitted" if status.final else "it is saved and not yet submitted"
    else:
        why = f"its folder on {run.context} was deleted, by a purge or by hand: {run.folder}"
    why += _copies(store, [entry])
    hint = f"run it again with `{again(run)}`" if status.final else f"see the run with `yurt show {run.id}`"
    return NotFoundError(f"run {run.id} cannot be fetched: {why}", code="not-found", hint=hint)


EXAMPLES = [
    "yurt fetch -",
    "yurt fetch x7q4z 8m2kd --only '*.json' --only plots/",
    "yurt fetch x7q4z --all --to ~/best",
    "yurt fetch @last-sweep --filter lr=0.1",
]


@verb(examples=EXAMPLES, context_help="")
@argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=run_names)
@option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Download only files that match GLOB; a trailing slash selects a folder; repeatable.",
)
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Download the complete run folder, including logs, checkpoints and yurt's own files.",
)
@option("--to", "folder", metavar="DIR", help="Download to DIR instead of results/RUN; to DIR/RUN for several runs.")
@FILTER
def fetch_command(
    runs: tuple[str, ...], only: tuple[str, ...], everything: bool, folder: str | None, filters: tuple[str, ...]
) -> int:
    """Download the results of runs.

    Downloads the results of each run to results/RUN: what it wrote to its working directory, and $YURT_OUTPUTS. With
    --all, the whole run folder to results/RUN.all. Also works while a run is running. Files that did not change are
    not transferred again, and an interrupted transfer continues. Fetched files stay out of snapshots. For a sweep,
    each started task is downloaded to results/SWEEP.NUMBER. A file of your project that --to DIR would replace is kept
    as NAME~.

    Runs and tasks in which no file matches --only are named; the exit code is 3 only if no file matches at all.
    """
    from yurt.cli.progress import watching

    if folder == "":
        raise UserError("--to is empty", code="usage", hint="for example: `--to results`")
    if "" in only:
        raise UserError("--only is empty", code="usage", hint="for example: `--only '*.json'`")
    call.enable_gc()
    to = Path(folder).expanduser() if folder else None
    with watching() as watch:
        found = fetch(runs, filters=filters, only=only, everything=everything, folder=to, watch=watch)
    return render.result(found, lambda: _print(found.data, found.unfinished))


def _print(done: list[Any], unfinished: Collection[str]) -> None:
    for name, places in folded([each.id for each in done]).items():
        each = done[places[0]]
        if len(places) > 1:
            _print_tasks(name, [done[at] for at in places], unfinished)
        elif not each.target:
            print(f"{each.id}: no results{' yet' if each.id in unfinished else ''}")
        elif not each.files:
            print(f"{each.id}: {render.plain(each.target)} is up to date")
        else:
            files = f"{render.count(each.files, 'file')}, {render.amount(each.size)}"
            print(f"{each.id}: {files} to {render.plain(each.target)}")


def _print_tasks(sweep: str, done: list[Any], unfinished: Collection[str]) -> None:
    """Print one line for many tasks of a sweep."""
    targets = [each.target for each in done if each.target]
    files = sum(each.files for each in done)
    start = f"{sweep}: {len(done)} tasks, "
    if not targets:
        print(f"{start}no results{' yet' if any(each.id in unfinished for each in done) else ''}")
        return
    where = render.plain(f"{targets[0].rpartition(sweep)[0]}{sweep}.*")
    if not files:
        print(f"{start}{where} are up to date")
    else:
        print(f"{start}{render.count(files, 'file')}, {render.amount(sum(each.size for each in done))} to {where}")
