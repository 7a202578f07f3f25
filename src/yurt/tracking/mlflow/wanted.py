"""What MLflow shows of a run: its name, parameters, tags, state, times, and the files with its metrics."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from yurt.model import layout
from yurt.model.digest import digest
from yurt.model.growth import EVENTS
from yurt.model.run import Run, Status
from yurt.store import Entry
from yurt.tracking.curves import common_folder
from yurt.tracking.followed import Copy
from yurt.tracking.mlflow import points, script_runs
from yurt.tracking.mlflow.names import LONGEST_PARAMETER, LONGEST_TAG, cut, name_of
from yurt.tracking.mlflow.points import Source
from yurt.tracking.mlflow.script_runs import ScriptRun

RUN, LOGGED = "yurt.run", "yurt.logged"
"""Tags that identify an MLflow run: the id of yurt's run, and the id of the script's own MLflow run, if it is one."""

CUT = "yurt.cut_params"
"""The tag that names parameters that were too long."""

SHOWN_PARAMETERS = 120
"""Characters of the parameters of a task in its name."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One MLflow run."""

    run: str
    logged: str = ""
    experiment: str
    name: str
    parent: str = ""
    """The key of its parent."""
    status: str
    started: int
    ended: int | None
    final: bool
    """Whether nothing more is expected."""
    params: dict[str, str]
    tags: dict[str, str]
    sources: list[Source]

    @property
    def key(self) -> str:
        return f"{self.run}#{self.logged}" if self.logged else self.run

    @property
    def print(self) -> str:
        """A text that differs if something has changed."""
        sizes = [(each.path, each.generation, each.size) for each in self.sources]
        rest = [self.name, self.status, self.started, self.ended, self.params, self.tags, self.parent]
        return digest(msgspec.json.encode([rest, sizes, self.final]).decode()).hex()


def of(entry: Entry, copies: Mapping[str, Copy]) -> Iterator[Wanted]:
    """Return the MLflow runs of a run, a sweep or a task; parents come before their children.

    `copies` have paths relative to the folder of the run. There is none if the run has not started.
    """
    run, status = entry.run, entry.status
    if not status.started and not status.final:
        return
    own = [] if run.tasks else script_runs.read(copies)
    first = next((each for each in own if not each.parent or all(each.parent != one.id for one in own)), None)
    params, too_long = _params({**run.params, **_flat(first.params if first else {}, run.params)})
    tags = {**_tags_of_script(first), **_tags(run, status)}
    if first is not None:
        tags |= _differing(run.params, first.params)
    if too_long:
        tags[CUT] = cut(", ".join(too_long), LONGEST_TAG)
    yield Wanted(
        run=run.id,
        experiment=layout.project_name(run.project) or run.project,
        name=_name(run),
        parent=run.sweep,
        status=_state(status),
        started=_milliseconds(status.started or run.created),
        ended=_milliseconds(status.ended) if status.final and status.ended else None,
        final=status.final,
        params=params,
        tags=tags,
        sources=_sources(copies, first),
    )
    for each in own:
        if first is not None and each is not first:
            yield _child(run, status, each, "" if each.parent == first.id else each.parent)


def _child(run: Run, status: Status, each: ScriptRun, parent: str) -> Wanted:
    params, _too_long = _params(each.params)
    over = status.final and each.status in ("RUNNING", "SCHEDULED")
    return Wanted(
        run=run.id,
        logged=each.id,
        experiment=layout.project_name(run.project) or run.project,
        name=each.name or each.id,
        parent=f"{run.id}#{parent}" if parent else run.id,
        status=_state(status) if over else each.status,
        started=each.started,
        ended=_milliseconds(status.ended) if over and status.ended else each.ended,
        final=status.final,
        params=params,
        tags={**_tags_of_script(each), RUN: run.id, LOGGED: each.id, "mlflow.user": run.user},
        sources=each.sources,
    )


def _name(run: Run) -> str:
    if run.task is None:
        return run.name or run.id
    return cut(", ".join(f"{key}={_text(value)}" for key, value in run.params.items()), SHOWN_PARAMETERS) or run.id


def _state(status: Status) -> str:
    if not status.final:
        return "RUNNING"
    return {"completed": "FINISHED", "cancelled": "KILLED"}.get(status.state, "FAILED")


def _tags(run: Run, status: Status) -> dict[str, str]:
    code = run.code
    command = shlex.join(run.command)
    own = {
        RUN: run.id,
        "yurt.sweep": run.sweep,
        "yurt.context": run.context,
        "yurt.project": run.project,
        "yurt.command": command,
        "yurt.tree": code.tree,
        "yurt.commit": code.commit,
        "yurt.branch": code.branch,
        "yurt.dirty": str(code.dirty).lower() if code.commit else "",
        "yurt.job": status.job,
        "yurt.node": status.node,
        "yurt.state": status.state,
        "yurt.reason": status.reason,
        "yurt.retry_of": run.retry_of,
        "mlflow.user": run.user,
        "mlflow.source.name": command,
        "mlflow.source.type": "JOB",
        "mlflow.source.git.commit": code.commit,
        "mlflow.source.git.branch": code.branch,
        "mlflow.note.content": run.note,
    }
    texts = {name: cut(text, LONGEST_TAG) for name, text in own.items() if text}
    for tag in run.tags:
        name, _, value = tag.partition("=")
        texts.setdefault(name_of(name), cut(value or "true", LONGEST_TAG))
    return texts


def _tags_of_script(own: ScriptRun | None) -> dict[str, str]:
    if own is None:
        return {}
    kept = {name: text for name, text in own.tags.items() if not name.startswith("mlflow.") or name in _FROM_SCRIPT}
    return {name_of(name): cut(text, LONGEST_TAG) for name, text in kept.items() if text}


_FROM_SCRIPT = ("mlflow.note.content", "mlflow.autologging")


def _flat(logged: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that only the script logged."""
    return {name: text for name, text in logged.items() if name not in known}


def _differing(known: Mapping[str, Any], logged: Mapping[str, str]) -> dict[str, str]:
    """Return tags with the parameters that the script logged with another value than yurt has."""
    names = [name for name in logged if name in known and logged[name] not in (_text(known[name]), str(known[name]))]
    return {name_of(f"yurt.logged_param.{name}"): cut(logged[name], LONGEST_TAG) for name in names}


def _params(values: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return parameters as MLflow accepts them, and the names of those that are too long for it."""
    texts = {name: _text(value) for name, value in values.items()}
    too_long = [name for name, text in texts.items() if len(text) > LONGEST_PARAMETER]
    return {name_of(name): cut(text, LONGEST_PARAMETER) for name, text in texts.items()}, too_long


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _sources(copies: Mapping[str, Copy], first: ScriptRun | None) -> list[Source]:
    """Return the files with points. What a script logs both with yurt and with MLflow counts once, as in `curves`."""
    logged, own = _metrics_files(copies), first.sources if first is not None else []
    if logged and own:
        names = points.names(logged)
        own = [each for each in own if each.metric not in names]
    return [*logged, *own] or _event_files(copies)


def _metrics_files(copies: Mapping[str, Copy]) -> list[Source]:
    return [
        Source(path, copy.file, copy.size, copy.generation)
        for path, copy in copies.items()
        if "/" not in path and path.startswith("metrics") and path.endswith(".jsonl")
    ]


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


def _event_files(copies: Mapping[str, Copy]) -> list[Source]:
    """Return the event files of a script that logs in no other way; tags of several folders begin with their names."""
    found = {path: path.rpartition("/")[0] for path in copies if EVENTS in path.rpartition("/")[2]}
    above = common_folder(list(found.values()))
    return [
        Source(
            path,
            copies[path].file,
            copies[path].size,
            copies[path].generation,
            events=f"{folder[len(above) :]}/".lstrip("/"),
        )
        for path, folder in found.items()
    ]
