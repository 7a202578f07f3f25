"""storage: the storage tiers of contexts, how full they are, and what their sites delete next."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from yurt.config import contexts
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.contexts.fan_out import side_by_side
from yurt.errors import UserError, YurtError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.storage import OwnUse, StorageReport, TierPlace, TierUse
from yurt.storage.purge import Purged, upcoming
from yurt.storage.tiers import of_path, tiers, unknown_names
from yurt.store import Store


class TierRow(msgspec.Struct, frozen=True, kw_only=True):
    """A storage tier of a context: what is known of it, and how full it is."""

    place: TierPlace
    """What is known of it."""
    use: TierUse | None = None
    """Null if the site was not reached, or if the tier is in each job only."""
    yurt: bool = False
    """Whether yurt keeps its runs there."""


class ContextStorage(msgspec.Struct, frozen=True, kw_only=True):
    """The storage of a context."""

    context: str
    tiers: list[TierRow] = []
    """Its storage tiers."""
    report: str = ""
    """The output of the command `storage_report` of the context."""
    purged: list[Purged] = []
    """Finished runs that the site will delete, the next one first."""
    own: list[OwnUse] = []
    """With --yurt: what yurt uses there, the largest kind first."""
    own_partly: bool = False
    """Whether there was not enough time to count all of it."""


def storage(
    names: Sequence[str] = (), *, context: str = "", own: bool = False, watch: Watch = unwatched
) -> Result[list[ContextStorage]]:
    """Query contexts in parallel, by default the current one, in one request each.

    `own`: also measure what yurt uses. A site that does not respond is shown without figures, and a warning; the exit
    code is then 4.
    """
    chosen = [contexts.site(name) for name in dict.fromkeys(names or [contexts.current_name(context)])]
    store = folders.store()
    found: dict[str, ContextStorage] = {}
    failed: dict[str, YurtError] = {}
    warnings: list[str] = []
    watch(Event(f"querying {', '.join(each.name for each in chosen)}"))

    def one(place: Context) -> None:
        with store.twin() as index:
            found[place.name], error, notes = _look(index, place, own=own, alone=len(chosen) == 1)
        if error is not None:
            failed[place.name] = error
        warnings.extend(notes)

    side_by_side(one, chosen)
    warnings += [f"cannot query {name}: {error.message}" for name, error in failed.items()]
    code = max((error.exit_code for error in failed.values()), default=0)
    data = [found[each.name] for each in chosen]
    return Result(kind="storage", data=data, warnings=warnings, exit_code=code)


def _look(
    store: Store, context: Context, *, own: bool, alone: bool
) -> tuple[ContextStorage, YurtError | None, list[str]]:
    """Return the storage of a context, why its site was not queried, and warnings."""
    error: YurtError | None = None
    report = StorageReport(tiers=[])
    places: list[TierPlace] = []
    base = ""
    try:
        facts = facts_if_probed(context)
        places = tiers(context, facts)
        base = folders.base_folder(context, facts)
        backend = connect.backend(context)
        connect.check_responds(context, backend, alone=alone)
        measured = _own_folders(context, base, facts) if own else []
        report = backend.site.storage([each for each in places if each.path], context.storage_report or "", measured)
    except UserError:
        raise  # a setting about tiers is invalid
    except YurtError as problem:
        error = problem
    uses = {each.name: each for each in report.tiers}
    tier = of_path(places, base) if base else None
    rows = [
        TierRow(place=each, use=uses.get(each.name), yurt=tier is not None and each.name == tier.name)
        for each in places
    ]
    notes = unknown_names(context, places) if places else []
    if report.failed:
        notes.append(f"{context.name}: the command `storage_report` failed: {report.failed}")
    entries = store.newest(where={"context": [context.name]})
    made = ContextStorage(
        context=context.name,
        tiers=rows,
        report=report.report,
        purged=upcoming(store, entries, places, time.time()),
        own=report.own,
        own_partly=report.own_partly,
    )
    return made, error, notes


def _own_folders(context: Context, base: str, facts: Facts | None) -> list[str]:
    """Return the folders of yurt on a site, each once."""
    return list(dict.fromkeys([base, *(folders.env_folders(context, facts).values() if facts is not None else ())]))
