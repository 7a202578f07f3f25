"""`yurt.runs`, `yurt.get`, `yurt.Run` and `yurt.Runs`: find runs, sweeps and tasks, and work with them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from yurt.api.rows import html, merged, rows_of
from yurt.contexts import connect, folders
from yurt.contexts.fan_out import ready
from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.lifecycle import ps
from yurt.lifecycle.files import metrics
from yurt.lifecycle.filters import passes, read_filters
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.select import which
from yurt.lifecycle.steps import STEPS
from yurt.model import ids, params
from yurt.model.site_words import Reading, one_each
from yurt.store import Entry, Store


class Run:
    """A run, a sweep, or a task of a sweep. Returned by `yurt.run`, `yurt.runs` and `yurt.get`.

    The properties have the values of the last refresh; `refresh` and `wait` update them. Two objects are equal if they
    have the same id.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._entry.run.id

    @property
    def name(self) -> str:
        """The name given to the run; may be empty."""
        return self._entry.run.name

    @property
    def sweep(self) -> str:
        """The id of the sweep of a task; empty for other runs."""
        return self._entry.run.sweep

    @property
    def context(self) -> str:
        """The name of its context."""
        return self._entry.run.context

    @property
    def command(self) -> list[str]:
        """The command as submitted; for function calls, the functions' names."""
        return list(self._entry.run.command)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters, or the arguments of a function call; values that JSON cannot represent as their repr."""
        return dict(self._entry.run.params)

    @property
    def tags(self) -> list[str]:
        """The tags of the run."""
        return list(self._entry.run.tags)

    @property
    def folder(self) -> str:
        """The path of the run folder on the site."""
        return self._entry.run.folder

    @property
    def state(self) -> str:
        """The state at the last refresh, such as `queued`, `running`, `completed` or `failed`; see `yurt ps`."""
        return self._entry.status.state

    @property
    def reason(self) -> str:
        """Why the run is in that state; may be empty."""
        return self._entry.status.reason

    @property
    def job(self) -> str:
        """The id of its job: of the Slurm job, or of the process on the context `local`; may be empty."""
        return self._entry.status.job

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command; None if there is none."""
        return self._entry.status.exit_code

    @property
    def started(self) -> float | None:
        """When the run started, as a Unix timestamp; None if it has not."""
        return self._entry.status.started

    @property
    def ended(self) -> float | None:
        """When the run finished, as a Unix timestamp; None if it has not."""
        return self._entry.status.ended

    @property
    def seconds(self) -> float | None:
        """The total running time of all starts, in seconds; None until the run has finished."""
        return self._entry.status.seconds

    @property
    def done(self) -> bool:
        """Whether the run has finished, in any state."""
        return self._entry.status.final

    def __repr__(self) -> str:
        return f"<yurt.Run {self.id} {self.state} on {self.context}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def tasks(self) -> Runs:
        """The tasks of a sweep; empty for a single run."""
        with _index() as index:
            return Runs(_tasks(index, self._entry))

    def refresh(self) -> Run:
        """Query the site, update this object and return it. If the site cannot be reached, a warning is issued."""
        with _index() as index:
            _warn(refresh_contexts(index, [self.context], steps=STEPS).warnings)
            self._reload(index)
        return self

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the run has finished and return its state. Raises `TimeoutError` after `timeout` seconds."""
        from yurt.lifecycle.wait import until_ended

        with _index() as index:
            until_ended(index, [self.id], timeout=timeout)
            self._reload(index)
        if not self.done:
            raise TimeoutError(f"run {self.id} has not finished after {timeout} s: it is {self.state}")
        return self.state

    def logs(self, stream: Literal["out", "err"] | None = None, *, lines: int | None = None) -> str:
        """Return the output so far, or one stream, `"out"` or `"err"`; with `lines`, only the last `lines` lines."""
        from yurt.lifecycle.files.logs import copy

        self._single("logs")
        found: list[bytes] = []
        with _index() as index:
            copy(
                index,
                self._entry.run,
                lambda which, text: found.append(text) if stream in (None, which) else None,
                lines=lines,
            )
        return b"".join(found).decode(errors="replace")

    @property
    def stdout(self) -> str:
        """What the run has written to its standard output so far, the same as `logs("out")`."""
        return self.logs("out")

    @property
    def stderr(self) -> str:
        """What the run has written to its standard error so far, the same as `logs("err")`."""
        return self.logs("err")

    def metrics(self) -> list[dict[str, Any]]:
        """Return everything logged with `yurt.log` so far: one dict for each call."""
        self._single("metrics")
        with _index() as index:
            return metrics.every(index, self._entry, connect.named_backend(self.context).files)

    def result(self) -> Any:
        """Return what the function of this task returned, or raise what it raised.

        Only for tasks of a `yurt.executor`. Raises `yurt.CallError` if the call has no result, and
        `yurt.errors.RefusedError` if it has not finished.
        """
        from yurt.api import pickles

        with _index() as index:
            plan = index.plan(self._entry.run.sweep or self.id)
        if plan is None or not plan.calls or self._entry.run.task is None:
            raise UserError(
                f"run {self.id} is not a function call, so it has no result",
                code="usage",
                hint="use `run.logs()`, `run.metrics()` or `run.fetch()`",
            )
        if not self.done:
            raise RefusedError(
                f"run {self.id} has not finished: it is {self.state}",
                code="run-not-finished",
                hint="call `run.wait()` first",
            )
        found = connect.named_backend(self.context).files.call_results([self.folder])
        with Reading(self.context):
            (result,) = one_each(found, [self.folder])
        return pickles.value_of(self._entry, result)

    def cancel(self) -> str:
        """Cancel the run and return its state, which may not be final yet.

        If the site cannot be reached, the request is saved, the error is raised, and the next yurt command that reaches
        the site cancels the run.
        """
        from yurt.lifecycle.cancel import cancel_runs

        with _index() as index:
            _done, error = cancel_runs(index, [self._entry])
            self._reload(index)
        if error is not None:
            raise error
        return self.state

    def fetch(self, to: str | Path | None = None, *, only: Sequence[str] = (), everything: bool = False) -> list[Path]:
        """Download the files that the run wrote, like `yurt fetch`, and return their local folders.

        Those are the files in `$YURT_OUTPUTS` and the new and changed files in its working directory.

        `to` is the target folder, by default `results/RUN`. `only` limits the download to files that match one of these
        patterns. With `everything`, download the complete run folder.
        """
        from yurt.lifecycle.fetch import fetch_runs
        from yurt.lifecycle.files.transfer import Wanted
        from yurt.lifecycle.select import begun

        with _index() as index:
            entries, _warnings = begun(index, [self.id])
            folder = Path(to).expanduser() if to is not None else None
            wanted = Wanted(only=only, everything=everything, folder=folder, several=bool(self._entry.run.tasks))
            found = fetch_runs(index, entries, wanted)
        if found.errors:
            raise found.errors[0]
        return [Path(each.target) for each in found.done if each.target]

    def _reload(self, index: Store) -> None:
        self._entry = index.get(self.id) or self._entry

    def _single(self, what: str) -> None:
        if self._entry.run.tasks:
            raise UserError(
                f"run {self.id} is a sweep; only its tasks have {what}",
                code="usage",
                hint=f"use `run.tasks[0].{what}()`",
            )


class Runs(Sequence[Run]):
    """A sequence of runs. Returned by `yurt.runs` and `yurt.Run.tasks`. Notebooks show it as a table."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> Runs: ...
    def __getitem__(self, at: int | slice) -> Run | Runs:
        return Runs(self._runs[at]) if isinstance(at, slice) else self._runs[at]

    def __repr__(self) -> str:
        return f"<yurt.Runs: {len(self)}>"

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict for each run, and for each task of a sweep: its command, state, parameters, last metrics.

        All rows have the same keys, as `pandas.DataFrame(rows)` and `polars.DataFrame(rows)` need. If a parameter or
        metric has the same name as another column, its key is prefixed with `params.` or `metrics.`.
        """
        with _index() as index:
            found = [row for run in self._runs for row in rows_of(index, run._entry)]
        return merged(found)

    def _repr_html_(self) -> str:
        return html([run._entry for run in self._runs])


def runs(
    *,
    sweep: str | Run | None = None,
    context: str | None = None,
    state: str | Sequence[str] | None = None,
    tag: str | None = None,
    name: str | None = None,
    params: Mapping[str, Any] | None = None,
    limit: int | None = None,
    refresh: bool = True,
) -> Runs:
    """Return the runs in the index of this machine, newest first; with `sweep`, the tasks of that sweep, in order.

        rows = yurt.runs(sweep="@last-sweep", state="completed").to_rows()

    - `sweep`: a sweep, as a `yurt.Run` or any name that `yurt show` accepts; `"@last-sweep"` is the newest one.
    - `context`, `name`, `tag`: only runs with this context, name or tag.
    - `state`: only runs in this state, or in one of these states; `failed` stands for every unsuccessful end.
    - `params`: only runs with these parameter values, and sweeps with a task that has them.
    - `limit`: at most this many runs.
    - `refresh`: whether to query the sites of unfinished runs first. If a site cannot be reached, a warning is issued.

    Raises `yurt.errors.NotFoundError` if the sweep does not exist.
    """
    ready()
    wanted = _filters(state, tag, name, params)
    with _index() as index:
        whole = None if sweep is None else which(index, [sweep.id if isinstance(sweep, Run) else sweep])[0]
        if refresh:
            _warn(refresh_contexts(index, None if whole is None else [whole.run.context], steps=STEPS).warnings)
        if whole is None:
            rows = ps.rows(index, limit=limit, filters=wanted, context=context or "")
            return Runs([Run(entry) for row in rows if (entry := index.get(row.id)) is not None])
        if not whole.run.tasks:
            raise NotFoundError(f"run {whole.run.id} is not a sweep", code="not-found", hint="list runs with `yurt ps`")
        where, rest = read_filters(wanted)
        tasks = [
            run
            for run in _tasks(index, index.get(whole.run.id) or whole)
            if all(getattr(run, key) in values for key, values in where.items()) and passes(index, run._entry, rest)
        ]
        return Runs(tasks[:limit])


def get(run: str, *, refresh: bool = True) -> Run:
    """Return one run, sweep or task.

        run = yurt.get("baseline")

    - `run`: its id, a prefix of it, a name (then the newest run with that name), or anything else that `yurt show`
      accepts, such as `"@last"`.
    - `refresh`: whether to query its site first if the run has not finished. If the site cannot be reached, a warning
      is issued.

    Raises `yurt.errors.NotFoundError` if there is no such run, and `yurt.errors.UserError` if a prefix is ambiguous.
    """
    ready()
    with _index() as index:
        found = Run(which(index, [run])[0])
        if refresh and not found.done:
            _warn(refresh_contexts(index, [found.context], steps=STEPS).warnings)
            found._reload(index)
        return found


def _filters(
    state: str | Sequence[str] | None, tag: str | None, name: str | None, values: Mapping[str, Any] | None
) -> list[str]:
    states = [state] if isinstance(state, str) else list(state or ())
    found = [f"state={each}" for each in states]
    found += [f"{key}={value}" for key, value in (("tag", tag), ("name", name)) if value is not None]
    return found + [f"{key}={params.as_text(value)}" for key, value in (values or {}).items()]


def _index() -> Store:
    return folders.store()


def _warn(texts: Sequence[str]) -> None:
    for text in texts:
        warnings.warn(text, stacklevel=3)


def _tasks(index: Store, entry: Entry) -> list[Run]:
    return [Run(task) for task in index.several([ids.task(entry.run.id, at) for at in range(entry.run.tasks)])]
