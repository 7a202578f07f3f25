"""Brings an MLflow store up to date with runs: reads what is new on their sites, and writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from yurt.errors import RefusedError, YurtError
from yurt.model import ids, layout
from yurt.model.addresses import without_password
from yurt.model.growth import Kind
from yurt.model.progress import Event, Watch, unwatched
from yurt.store import Entry, Store
from yurt.tracking import follow
from yurt.tracking.followed import Copy, Followed
from yurt.tracking.mlflow import journal, points, wanted
from yurt.tracking.mlflow.failures import explained
from yurt.tracking.mlflow.journal import Journal, Written
from yurt.tracking.mlflow.place import Place
from yurt.tracking.mlflow.points import Point, Position, stored_value
from yurt.tracking.mlflow.wanted import LOGGED, RUN, Wanted

BATCH, TEXTS = 1000, 100
"""How many metrics, and how many parameters or tags, MLflow accepts in one request."""

REPLACED = "yurt.replaced_by"
"""The tag of an MLflow run that was deleted because another one is the same run."""

PARENT = "mlflow.parentRunId"

Item = TypeVar("Item")


class Merger:
    """Writes runs to one store, while its journal is open."""

    def __init__(self, place: Place, journal: Journal) -> None:
        self._place, self._journal, self.client = place, journal, place.client
        self._experiments: dict[str, str] = {}

    def merge(self, wanted: Wanted, *, complete: bool) -> bool:
        """Write what is new of a run; False if nothing is. `complete`: all its files were brought after its end.

        UnreachableError: what was written stays, and the next call continues.
        """
        written = self._journal.get(wanted.key)
        final = wanted.final and complete
        if written.print == wanted.print and not written.marked:
            if final and not written.final:
                self._journal.put(wanted.key, msgspec.structs.replace(written, final=True))
            return False
        with explained(self._place.uri):
            done = _OneRun(self, wanted, written).write()
        self._journal.put(wanted.key, msgspec.structs.replace(done, marked=False, print=wanted.print, final=final))
        return True

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def here(self) -> bool:
        """Whether the lock of the journal keeps everyone else from writing."""
        return self._place.here

    def mlflow_id(self, key: str) -> str:
        """Return the id of a run in MLflow; empty if it has none yet."""
        return self._journal.get(key).mlflow

    def experiment(self, name: str) -> str:
        """Return the id of an experiment, which is created if absent."""
        from mlflow.exceptions import MlflowException

        if name in self._experiments:
            return self._experiments[name]
        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                self.client.create_experiment(name, artifact_location=self._place.artifacts(name))
            except MlflowException:
                found = self.client.get_experiment_by_name(name)  # another machine was faster
                if found is None:
                    raise
            found = found or self.client.get_experiment_by_name(name)
        if found.lifecycle_stage == "deleted":
            raise RefusedError(
                f"experiment '{name}' was deleted in the MLflow store {without_password(self._place.uri)}",
                code="mlflow-refused",
                hint=f"restore it with `mlflow experiments restore --experiment-id {found.experiment_id}`",
            )
        self._experiments[name] = str(found.experiment_id)
        return self._experiments[name]


class _OneRun:
    """Writes one run."""

    def __init__(self, merger: Merger, wanted: Wanted, written: Written) -> None:
        self._merger, self._wanted, self._written = merger, wanted, written
        self._client = merger.client
        self._compare = written.marked
        self._known: dict[str, set[tuple[int, int, float | None]]] = {}

    def write(self) -> Written:
        found = self._find_or_create()
        if found.info.lifecycle_stage == "deleted":  # by the user, who does not want it
            return self._written
        run = self._written.mlflow
        self._write_texts(run, found)
        for part, positions in self._batches():
            self._mark()
            for some in _chunks(self._missing(run, part), BATCH):
                self._client.log_batch(run, metrics=[_metric(each) for each in some])
            # What was there before, from another journal, is compared to the end.
            self._note(positions={**self._written.positions, **positions}, marked=self._compare)
        self._write_state(run, found.info)
        return self._written

    def _find_or_create(self) -> Any:
        """Return the MLflow run, which is created if absent."""
        if self._written.mlflow:
            found = self._get(self._written.mlflow)
            replaced = found.data.tags.get(REPLACED, "") if found is not None else ""
            if found is not None and not (replaced and found.info.lifecycle_stage == "deleted"):
                return found
            self._compare = True
            self._note(mlflow="", positions={}, tags={})
        experiment = self._merger.experiment(self._wanted.experiment)
        found = self._search(experiment)
        if found is None:
            self._mark()
            made = self._client.create_run(
                experiment, start_time=self._wanted.started, tags=self._tags(), run_name=self._wanted.name
            )
            found = made if self._merger.here else self._search(experiment) or made
            self._compare = self._compare or found.info.run_id != made.info.run_id
        else:
            self._compare = True
        self._note(mlflow=found.info.run_id, marked=self._compare)
        return found

    def _get(self, run: str) -> Any:
        from mlflow.exceptions import MlflowException

        try:
            return self._client.get_run(run)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise

    def _search(self, experiment: str) -> Any:
        """Return the MLflow run; of several, the one that sorts first, and delete the others."""
        found = self._client.search_runs([experiment], f"tags.`{RUN}` = '{self._wanted.run}'", max_results=1000)
        same = [each for each in found if each.data.tags.get(LOGGED, "") == self._wanted.logged]
        same.sort(key=lambda each: str(each.info.run_id))
        for each in same[1:]:
            self._client.set_tag(each.info.run_id, REPLACED, same[0].info.run_id)
            self._client.delete_run(each.info.run_id)
        return same[0] if same else None

    def _tags(self) -> dict[str, str]:
        parent = self._merger.mlflow_id(self._wanted.parent) if self._wanted.parent else ""
        return {**self._wanted.tags, **({PARENT: parent} if parent else {})}

    def _write_texts(self, run: str, found: Any) -> None:
        """Write parameters and tags. Tags that the user changed in MLflow stay, until they change in yurt."""
        from mlflow.entities import Param, RunTag

        there: dict[str, str] = found.data.tags
        tags = self._tags()
        before = self._written.tags
        new = {name: text for name, text in tags.items() if before.get(name) != text and there.get(name) != text}
        params = {name: text for name, text in self._wanted.params.items() if name not in found.data.params}
        for some in _chunks(new.items(), TEXTS):
            self._client.log_batch(run, tags=[RunTag(name, text) for name, text in some])
        for pairs in _chunks(params.items(), TEXTS):
            self._write_params(run, [Param(name, text) for name, text in pairs])
        if before != tags:
            self._note(tags=tags)

    def _write_params(self, run: str, params: Sequence[Any]) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.log_batch(run, params=params)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            there = self._client.get_run(run).data.params  # another machine wrote some of them
            if rest := [each for each in params if each.key not in there]:
                self._client.log_batch(run, params=rest)

    def _batches(self) -> Iterator[tuple[list[Point], dict[str, Position]]]:
        """Return new points, at least a thousand at a time, and the positions after them."""
        part: list[Point] = []
        positions: dict[str, Position] = {}
        for source in self._wanted.sources:
            since = self._written.positions.get(source.path)
            if since is not None and since.generation != source.generation:
                self._compare = True  # the file was replaced: MLflow has points of it that may be the same
            for found, position in points.read(source, since):
                part += found
                positions[source.path] = position
                if len(part) >= BATCH:
                    yield part, positions
                    part, positions = [], {}
        if part or positions:
            yield part, positions

    def _missing(self, run: str, part: Iterable[Point]) -> list[Point]:
        """Return the points that MLflow does not have."""
        if not self._compare:
            return list(part)
        for metric in {each.metric for each in part} - self._known.keys():
            history = self._client.get_metric_history(run, metric)
            self._known[metric] = {(each.timestamp, each.step, stored_value(each.value)) for each in history}
        return [each for each in part if each.stored not in self._known[each.metric]]

    def _write_state(self, run: str, info: Any) -> None:
        wanted = self._wanted
        if info.status == wanted.status and wanted.ended in (None, info.end_time):
            return
        if wanted.status in ("RUNNING", "SCHEDULED"):
            self._client.update_run(run, status=wanted.status)
        else:
            self._client.set_terminated(run, wanted.status, wanted.ended or info.end_time)

    def _mark(self) -> None:
        if not self._written.marked:
            self._note(marked=True)

    def _note(self, **changes: Any) -> None:
        self._written = msgspec.structs.replace(self._written, **changes)
        self._merger.journal.put(self._wanted.key, self._written)


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    found = list(items)
    for at in range(0, len(found), size):
        yield found[at : at + size]


def _metric(point: Point) -> Any:
    from mlflow.entities import Metric

    return Metric(point.metric, point.value, point.time, point.step)


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
