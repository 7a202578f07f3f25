"""prune: remove run folders and unused environments from their sites. The runs stay in the index on this machine.

Never removes a run that has not finished according to its site, nor, unless requested, the only copy of results.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click
import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.completers import context_names, run_names
from yurt.cli.declare import ONLY_CONTEXT, argument, option, verb
from yurt.cli.listing import listing
from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.errors import RefusedError, YurtError
from yurt.lifecycle import prune_envs
from yurt.lifecycle.files.missing_copies import Missing, describe, missing_copies
from yurt.lifecycle.last_jobs import observe_until_left
from yurt.lifecycle.prune_envs import PrunedEnv
from yurt.lifecycle.refresh import archive
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which, with_tasks
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
    from yurt.lifecycle.prune_all import Cleared
    from yurt.lifecycle.prune_envs import PrunedEnv
    from yurt.model.result import Result


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


def _note_removed(store: Store, run: str) -> None:
    """Record that a folder is gone, if yurt began to remove it and was interrupted."""
    at = store.going_since(run)
    if at is not None:
        store.note_gone([run], at)


EXAMPLES = [
    "yurt prune --older-than 30d",
    "yurt prune --dry-run @last-sweep",
    "yurt prune x7q4z 8m2kd --yes",
    "yurt prune --context big --state failed --unfetched",
    "yurt prune --all big",
]


def _states(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from yurt.model.run import FINAL

    return sorted(state for state in FINAL if state.startswith(incomplete))


@verb(examples=EXAMPLES, context_help=ONLY_CONTEXT)
@argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=run_names)
@option(
    "--older-than", metavar="TIME", help="Remove only what finished, or was last used, longer ago than this: 30d, 12h."
)
@option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    shell_complete=_states,
    help="Remove only runs with this final state; repeatable.",
)
@option(
    "--all",
    "everything",
    metavar="CONTEXT",
    shell_complete=context_names,
    help="Remove everything that yurt stored on a context.",
)
@option("--unfetched", is_flag=True, help="Also remove results that were not fetched.")
@option("--yes", is_flag=True, help="Do not ask for confirmation.")
@option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
def prune_command(
    runs: tuple[str, ...], everything: str | None, unfetched: bool, yes: bool, dry_run: bool, **filters: Any
) -> int:
    """Remove finished runs and unused environments from their sites.

    Removes the folders of the given runs, or of all finished runs, after listing them and asking for confirmation.
    Runs that have not finished are never removed. Runs whose results exist only on the site are kept unless
    --unfetched is given. The runs stay in the index, and `yurt show` reports that the folder was removed. A sweep is
    removed with all its tasks.

    Unless runs or --state are given, environments that no run has used for 30 days, or for the time of --older-than,
    are removed too, with uploaded wheels that no other environment needs. Those that a job in the queue needs are kept.
    A later run builds a removed environment again, with the same packages.

    The exit code is 5 if a run that you name is kept; if its folder was removed before, it is 0.
    """
    from yurt.errors import UserError

    if dry_run and yes:
        raise UserError("--dry-run and --yes cannot be combined", code="usage", hint="use `yurt prune --dry-run`")
    agreed = None if dry_run else yes
    if everything is not None:
        if runs or filters["older_than"] or filters["states"] or call.current().context not in ("", everything):
            raise UserError(
                "--all cannot be combined with runs, --older-than, --state or another context",
                code="usage",
                hint=f"use `yurt prune --all {everything}`",
            )
        return _all(everything, unfetched=unfetched, yes=agreed)
    return _some(runs, unfetched=unfetched, yes=agreed, **filters)


def _some(
    runs: Sequence[str], *, older_than: str | None, states: Sequence[str], unfetched: bool, yes: bool | None
) -> int:
    from yurt.cli.progress import watching

    age = _age(older_than)
    _check(states)
    call.enable_gc()
    with watching() as watch:
        found = survey(
            runs,
            context=call.current().context,
            states=states,
            older_than=age,
            unfetched=unfetched,
            watch=watch,
        )
    going = bool(found.data.removed or found.data.environments)
    question = f"permanently remove {_amounts(found.data)}?"
    if yes is None:
        return render.result(found, lambda: _print(found.data), requested=True)
    if going and not _agreed(yes, lambda: _print(found.data), question):
        return _not_confirmed(found, lambda: _print(found.data))
    call.current().warnings += found.warnings
    with watching() if going else nullcontext(unwatched) as watch:
        done = remove(found.data, named=bool(runs), older_than=age, watch=watch)
    return render.result(done, lambda: _print(done.data))


def _all(context: str, *, unfetched: bool, yes: bool | None) -> int:
    from yurt.cli.progress import watching
    from yurt.lifecycle import prune_all

    call.enable_gc()
    with watching() as watch:
        found = prune_all.survey(context, unfetched=unfetched, watch=watch)
    if not found.data.projects:
        return render.result(found, lambda: print(f"nothing to remove on {context}"))
    question = f"permanently remove everything from {context}?"
    if yes is None:
        return render.result(found, lambda: _print_all(found.data), requested=True)
    if not _agreed(yes, lambda: _print_all(found.data), question):
        return _not_confirmed(found, lambda: _print_all(found.data))
    with watching() as watch:
        done = prune_all.remove(found.data, watch=watch)
    return render.result(done, lambda: _print_all(done.data))


def _age(text: str | None) -> float | None:
    from yurt.errors import UserError
    from yurt.model.resources import parse_seconds

    try:
        return None if text is None else float(parse_seconds(text))
    except ValueError:
        raise UserError(
            f"--older-than: '{text}' is not a duration", code="usage", hint="for example: `--older-than 30d`"
        ) from None


def _check(states: Sequence[str]) -> None:
    from yurt.errors import UserError, one_of
    from yurt.model.run import FINAL

    for state in states:
        if state not in FINAL:
            hint = f"use {one_of(sorted(FINAL))}"
            raise UserError(f"--state: '{state}' is not a final state", code="usage", hint=hint)


def _agreed(yes: bool, show: Callable[[], None], question: str) -> bool:
    """Return whether the user agrees: with --yes, or by answering on a terminal. Abort if the answer is no."""
    if yes:
        return True
    if call.current().json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    show()
    if not confirm(question, default=False):
        raise click.Abort
    return True


def _not_confirmed(found: Result[Any], show: Callable[[], None]) -> int:
    call.current().warnings.append("nothing was removed; run the command again with `--yes`")
    render.result(found, show, requested=True)
    return 2


def _print(found: Pruned) -> None:
    now = time.time()

    def row(each: Candidate, *, named: bool) -> list[str]:
        results = "none" if not each.files else "fetched" if each.fetched else "not fetched"
        age = render.span(now - (each.ended or each.created))
        name = [each.name] if named else []
        return [each.id, *name, each.context, each.state, age, render.amount(each.size), results]

    verb = "removed" if found.done else "would remove"
    for title, group in ((verb, found.removed), ("kept", found.kept)):
        if group:
            print(f"{title}: {render.count(len(group), 'run')}, {render.amount(sum(each.size for each in group))}")
            named = any(each.name for each in group)
            columns = ["run", *(["name"] if named else []), "context", "state", "age", "size", "results"]
            rows = [row(each, named=named) for each in group]
            reasons = [each.kept for each in group] if group is found.kept else []
            if reasons and not render.visual():  # a pipe gets one line for each run
                columns, rows = [*columns, "reason"], [[*line, why] for line, why in zip(rows, reasons, strict=True)]
                reasons = []
            styles = [""] * len(rows)
            listing(columns, rows, styles=styles, styled="", shrinks=["name"], numbers=["size"], notes=reasons)
    if found.environments:
        _print_environments(found.environments, verb)
    if not found.removed and not found.environments:
        print("nothing to remove", file=sys.stderr)


def _amounts(found: Pruned) -> str:
    """Return what is removed, in words: 3 runs (12 MB) and 1 environment (3.4 GB)."""
    groups = (
        (found.removed, "run", len(found.removed)),
        (found.environments, "environment", sum(each.what == "environment" for each in found.environments)),
    )
    texts = []
    for group, word, number in groups:
        if group:
            what = render.count(number, word) if number else "files of environments"
            texts.append(f"{what} ({render.amount(sum(each.size for each in group))})")
    return " and ".join(texts)


NAMES = {"environment": "", "replaced": "its older copy", "wheels": "unused wheels"}


def _print_environments(found: Sequence[PrunedEnv], verb: str) -> None:
    print(f"{verb}: unused environments, {render.amount(sum(each.size for each in found))}")
    rows = [
        [
            " ".join(filter(None, (each.address, NAMES[each.what]))),
            each.context,
            each.project,
            each.title,
            render.amount(each.size),
            str(each.files),
            render.moment(each.used) if each.used else "",
        ]
        for each in found
    ]
    titles = ["environment", "context", "project", "from", "size", "files", "last used"]
    render.table(titles, rows, numbers=["size", "files"])


def _print_all(found: Cleared) -> None:
    runs = sum(each.runs for each in found.projects)
    size = render.amount(sum(each.size for each in found.projects))
    done = "removed" if found.done else "would remove"
    print(f"{done} from {found.context}, {render.plain(found.folder)}: {render.count(runs, 'run')}, {size}")
    rows = [[each.project, str(each.runs), render.amount(each.size)] for each in found.projects]
    render.table(["project", "runs", "size"], rows, numbers=["runs", "size"])
    for folder in found.left:
        why = "the backups of dev nodes" if folder == f"{found.folder}/workspaces" else "files that yurt did not create"
        print(f"kept, because it contains {why}: {render.plain(folder)}")
