"""storage keep: copy results that a site will delete to a lasting tier of the same site."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Sequence

import msgspec

from yurt.cli import call, render
from yurt.cli.completers import run_names
from yurt.cli.declare import argument, option, verb
from yurt.cli.filters import folded
from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.errors import NotFoundError, RefusedError, UserError, YurtError
from yurt.lifecycle.select import begun
from yurt.model import layout, place
from yurt.model.context import Context
from yurt.model.files import NOTHING, KeepItem, KeepSource, Measures, count, size
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.storage.lasting import candidates, check_not_there, chosen
from yurt.storage.places import path_of
from yurt.storage.room import lacking, room
from yurt.storage.tiers import tiers
from yurt.store import Entry, Store
from yurt.store.site_copies import SiteCopy

RECORDS = 1_000_000
"""Bytes for the logs and records of a run, and files for them."""
RECORD_FILES = 10


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Results with a copy on a lasting tier."""

    what: str
    """The run, or the place as it was named."""
    context: str
    tier: str
    """The name of the tier with the copy."""
    path: str
    """The copy on the site."""
    copied: bool
    """Whether something was copied now; if not, the copy was complete."""
    files: int
    """Number of result files."""
    size: int
    """Their size in bytes."""


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Something to copy."""

    label: str
    source: str
    below: str
    """Its folder in yurt-kept."""
    entry: Entry | None = None


def keep(
    names: Sequence[str],
    *,
    to: str = "",
    everything: bool = False,
    context: str = "",
    watch: Watch = unwatched,
) -> Result[list[Kept]]:
    """Copy runs, the started tasks of sweeps, files and folders to a lasting tier of their own site.

    `everything`: also checkpoints. A copy is complete or does not exist. What could not be copied is a warning and sets
    the exit code; if nothing could be, the first error is raised.
    """
    store = folders.store()
    places, runs = _sorted(names)
    by_context: dict[str, list[_Wanted]] = {}
    warnings: list[str] = []
    if runs:
        entries, warnings = begun(store, runs, watch=watch)
        for entry in entries:
            by_context.setdefault(entry.run.context, []).append(_of_run(entry))
    for name, found in places:
        site = contexts.site(contexts.current_name(found.context or context))
        by_context.setdefault(site.name, []).append(_of_place(site, name, found))
    done: list[Kept] = []
    errors: list[YurtError] = []
    for name, wanted in by_context.items():
        try:
            kept, failed, notes = _keep(store, contexts.site(name), wanted, to=to, everything=everything, watch=watch)
            done += kept
            errors += failed
            warnings += notes
        except YurtError as error:  # give up on this context, continue with the others
            errors.append(error)
    if errors and not done:
        if len(errors) > 1:
            errors[0].message += f" (and {len(errors) - 1} more)"
        raise errors[0]
    code = max((error.exit_code for error in errors), default=0)
    return Result(
        kind="results-kept", data=done, warnings=[*warnings, *(error.message for error in errors)], exit_code=code
    )


def _sorted(names: Sequence[str]) -> tuple[list[tuple[str, place.PlaceName]], list[str]]:
    """Return the places among the names, and the runs. CONTEXT:NUMBER is a job, and so a run."""
    places, runs = [], []
    for name in names:
        found = place.parse(name)
        if found is None or name.rpartition(":")[2].replace("_", "", 1).isdigit():
            runs.append(name)
        else:
            places.append((name, found))
    return places, runs


def _of_run(entry: Entry) -> _Wanted:
    run = entry.run
    below = layout.kept("", run.project, run.id).removeprefix(f"/{layout.KEPT}/")
    return _Wanted(label=f"run {run.id}", source=run.folder, below=below, entry=entry)


def _of_place(context: Context, name: str, found: place.PlaceName) -> _Wanted:
    path = path_of(context, facts_if_probed(context), found)
    if not found.path.strip("/~"):
        raise UserError(f"'{name}' is a whole tier", code="usage", hint="name a file or a folder in it")
    below = posixpath.join("places", found.tier or "files", found.path.lstrip("/~").strip("/"))
    return _Wanted(label=f"'{name}'", source=path, below=below)


def _keep(
    store: Store, context: Context, wanted: Sequence[_Wanted], *, to: str, everything: bool, watch: Watch
) -> tuple[list[Kept], list[YurtError], list[str]]:
    """Copy everything of one context. Return the copies, the errors of others, and warnings."""
    facts = facts_if_probed(context)
    known = tiers(context, facts)
    for each in wanted:
        check_not_there(context.name, known, each.source, each.label, to)
    some = candidates(context.name, known, to)
    backend = connect.backend(context)
    connect.check_responds(context, backend)
    watch(Event(f"querying {context.name}"))
    first = wanted[0]
    instead = f"run `yurt fetch {first.entry.run.id}` instead" if first.entry else "choose a tier with `--to TIER`"
    items = [KeepItem(source=each.source, target="", run=each.entry is not None) for each in wanted]
    sources, uses = backend.files.keep_look(items, some)
    tier, use = chosen(context.name, some, uses, instead)
    there, errors, done = [], list[YurtError](), list[Kept]()
    for each, source in zip(wanted, sources, strict=True):
        target = f"{tier.path.rstrip('/')}/{layout.KEPT}/{each.below}"
        error = _unusable(context.name, each, source)
        if error is None:
            there.append((each, source, target))
        elif (row := _earlier(store, context.name, each)) is not None and source.what == "gone":
            done.append(row)
        else:
            errors.append(error)
    if not there:
        return done, errors, []
    need = sum(_bytes(source.measures, everything) for _each, source, _target in there)
    files = sum(_files(source.measures, everything) for _each, source, _target in there)
    extra = sum(each.entry is not None for each, _source, _target in there)
    free, needed = lacking(room(tier, use), need + extra * RECORDS, files + extra * RECORD_FILES)
    if needed:
        raise RefusedError(
            f"{context.name}: {tier.name} has {free}, and the copy needs {needed}; nothing was copied",
            code="no-room",
            hint=instead if to else f"{instead}, or choose another tier with `--to TIER`",
        )
    what = there[0][0].label if len(there) == 1 else f"{len(there)} results"
    watch(Event(f"copying {what} to {tier.name} on {context.name}", 0, len(there)))
    results = backend.files.keep(
        tier.path,
        [KeepItem(source=each.source, target=target, run=each.entry is not None) for each, _source, target in there],
        checkpoints=everything,
        copied=lambda at: watch(Event(f"copying {what} to {tier.name} on {context.name}", at, len(there))),
    )
    for (each, source, target), result in zip(there, results, strict=True):
        if result.failed:
            errors.append(_failed(context.name, each, tier.name, result.failed, instead))
            continue
        copy = SiteCopy(tier=tier.name, path=target, at=time.time(), measures=result.measures)
        if each.entry is not None:
            store.note_site_copy(each.entry.run.id, copy)
        done.append(
            _row(each, copy, source.measures, context=context.name, copied=result.copied, everything=everything)
        )
    notes = []
    if tier.purge_days is not None:
        notes.append(f"{context.name} deletes files on {tier.name} after {tier.purge_days} days, too")
    return done, errors, notes


def _row(each: _Wanted, copy: SiteCopy, measures: Measures, *, context: str, copied: bool, everything: bool) -> Kept:
    return Kept(
        what=each.entry.run.id if each.entry else each.label.strip("'"),
        context=context,
        tier=copy.tier,
        path=copy.path,
        copied=copied,
        files=_files(measures, everything),
        size=_bytes(measures, everything),
    )


def _earlier(store: Store, context: str, each: _Wanted) -> Kept | None:
    """Return the copy of a run whose folder is gone."""
    copy = store.site_copy(each.entry.run.id) if each.entry else None
    if copy is None or each.entry is None:
        return None
    whole = bool(copy.measures.checkpoints)
    return _row(each, copy, copy.measures, context=context, copied=False, everything=whole)


def _unusable(context: str, each: _Wanted, source: KeepSource) -> YurtError | None:
    if source.what == "gone":
        if each.entry is None:
            hint = "check the name with `yurt data ls PLACE`"
            return NotFoundError(f"{context}: {each.label} is not there: {each.source}", code="not-found", hint=hint)
        return NotFoundError(
            f"{context}: the folder of {each.label} was deleted, by a purge or by hand: {each.source}",
            code="not-found",
            hint=f"run it again with `yurt retry {each.entry.run.id}`",
        )
    if source.what == "going":
        run = each.entry.run.id if each.entry else each.label
        return UserError(f"{each.label} has not finished", code="usage", hint=f"wait for it with `yurt wait {run}`")
    return None


def _failed(context: str, each: _Wanted, tier: str, why: str, instead: str) -> YurtError:
    full = "No space left" in why or "quota" in why.lower()
    reason = "it is full" if full else why
    code = "disk-full" if full else "site-refused"
    return RefusedError(f"{context}: cannot copy {each.label} to {tier}: {reason}", code=code, hint=instead)


def _bytes(measures: Measures, everything: bool) -> int:
    return sum(size(each) for each in _counted(measures, everything))


def _files(measures: Measures, everything: bool) -> int:
    return sum(count(each) for each in _counted(measures, everything))


def _counted(measures: Measures, everything: bool) -> list[str]:
    parts = [measures.outputs, measures.work, *([measures.checkpoints] if everything else [])]
    return [each for each in parts if each not in ("", NOTHING)]


EXAMPLES = [
    "yurt storage keep x7q4z",
    "yurt storage keep @last-sweep --to project",
    "yurt storage keep alpha:scratch:datasets/cifar",
]


@verb(examples=EXAMPLES, context_help="Look for PLACE on this context instead of the current one.")
@argument("names", nargs=-1, required=True, metavar="RUN|PLACE...", shell_complete=run_names)
@option("--to", metavar="TIER", default="", help="Copy to this storage tier; by default project, else home.")
@option("--all", "everything", is_flag=True, help="Also copy checkpoints.")
def keep_command(names: tuple[str, ...], to: str, everything: bool) -> int:
    """Copy results to a storage tier that is not purged.

    The site copies the results itself, into yurt-kept in the tier: what a run wrote to its working directory, its
    outputs, its logs and its record. A sweep keeps its started tasks. Nothing is copied if it does not fit. Repeating
    the command continues an interrupted copy, and adds what has changed. `yurt fetch` uses the copy when the run folder
    is gone.

    PLACE is a file or a folder: TIER:PATH, CONTEXT:TIER:PATH or CONTEXT:/PATH.
    """
    from yurt.cli.progress import watching

    call.enable_gc()
    with watching() as watch:
        found = keep(names, to=to, everything=everything, context=call.current().context, watch=watch)
    return render.result(found, lambda: _print(found.data))


def _print(done: list[Kept]) -> None:
    for name, places in folded([each.what for each in done]).items():
        some = [done[at] for at in places]
        first = some[0]
        what = name if len(some) == 1 else f"{name}: {len(some)} tasks"
        where = first.path if len(some) == 1 else first.path.rpartition("/tasks/")[0]
        if not any(each.copied for each in some):
            print(render.plain(f"{what}: {where} on {first.context} is up to date"))
            continue
        files, size = sum(each.files for each in some), sum(each.size for each in some)
        amount = f"{render.count(files, 'file')}, {render.amount(size)}"
        print(render.plain(f"{what}: {amount} to {where} on {first.context}"))
