"""Brings an MLflow store up to date with runs: reads what is new on their sites, and writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from yurt.errors import YurtError
from yurt.model import ids, layout
from yurt.model.growth import Kind
from yurt.model.progress import Event, Watch, unwatched
from yurt.store import Entry, Store
from yurt.tracking import follow
from yurt.tracking.followed import Copy, Followed
from yurt.tracking.mlflow import journal, wanted
from yurt.tracking.mlflow.merge import Merger
from yurt.tracking.mlflow.place import Place

KINDS: tuple[Kind, ...] = ("metrics", "events", "mlflow")


class Updated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an update."""

    changed: int = 0
    """How many MLflow runs were created or changed."""
    failed: list[YurtError] = []
    """Errors of contexts whose files could not be read."""


def update(store: Store, place: Place, entries: Sequence[Entry], *, watch: Watch = unwatched) -> Updated:
    """Write what is new of runs, sweeps and tasks to a store.

    Errors of contexts are returned; what this machine has of their runs is written. UnreachableError and RefusedError
    are of the store: what was written stays.
    """
    with journal.opened(place.uri) as opened:
        done = opened.finished()
    entries = [entry for entry in _with_sweeps(store, entries) if entry.run.id not in done]
    if not entries:
        return Updated()
    known = {entry.run.id for entry in entries}
    failed = follow.bring(store, [each for each in entries if each.run.sweep not in known], KINDS, watch=watch)
    watch(Event("waiting for another yurt process that writes to MLflow"))
    changed = 0
    with journal.opened(place.uri) as opened:
        watch(Event("loading MLflow"))
        merger = Merger(place, opened)
        for number, entry in enumerate(entries):
            watch(Event("writing to MLflow", number, len(entries)))
            changed += _update_one(store, merger, entry, known, complete=not failed)
    return Updated(changed=changed, failed=failed)


def _update_one(store: Store, merger: Merger, entry: Entry, known: set[str], *, complete: bool) -> int:
    """Write one run, or a sweep with its tasks. It counts as complete only after everything of it is written."""
    changed = 0
    copies = Followed(entry.run.sweep or entry.run.id).copies()
    top = None
    for each in _parts(store, entry, known):
        for found in wanted.of(each, _below(copies, each)):
            changed += merger.merge(found, complete=False)
            top = top or found
    if top is not None and complete and top.final:
        merger.merge(top, complete=True)
    return changed


def _parts(store: Store, entry: Entry, known: set[str]) -> Iterator[Entry]:
    """Return a run, or a sweep and all its tasks unless only some of them are wanted."""
    yield entry
    if entry.run.tasks and not any(each.startswith(f"{entry.run.id}.") for each in known):
        yield from store.several([ids.task(entry.run.id, number) for number in range(entry.run.tasks)])


def _with_sweeps(store: Store, entries: Sequence[Entry]) -> list[Entry]:
    """Return the same entries, and before tasks their sweeps: MLflow shows tasks below them."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.run.sweep and entry.run.sweep not in found:
            found |= {each.run.id: each for each in store.several([entry.run.sweep])}
        found.setdefault(entry.run.id, entry)
    return list(found.values())


def _below(copies: Mapping[str, Copy], entry: Entry) -> dict[str, Copy]:
    """Return the copies of a run or a task by their paths in its folder."""
    if entry.run.tasks:
        return {}
    prefix = "" if entry.run.task is None else f"{layout.TASKS}/{entry.run.task}/"
    return {path[len(prefix) :]: copy for path, copy in copies.items() if path.startswith(prefix)}
