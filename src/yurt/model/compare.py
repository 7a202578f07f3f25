"""Compares two runs, except for the text of their code. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from yurt.model.run import Run, Status
from yurt.model.settings import TABLE

Part = Literal["command", "parameters", "code", "environment", "packages", "resources", "outcome"]

SETTING_OF = {row.resource: row.key.partition(".")[0] for row in TABLE if row.resource} | {"gpu_type": "resources"}
"""The setting that determines each requested resource."""

EXPANDED = ("variables", "sbatch_options")
"""Settings that are compared key by key."""


class ComparedValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One property of both runs. A side without it is omitted."""

    part: Part
    key: str
    same: bool
    left: Any = msgspec.UNSET
    right: Any = msgspec.UNSET
    left_source: str = ""
    right_source: str = ""


class Side(msgspec.Struct, frozen=True):
    """One of the two runs."""

    run: Run
    status: Status
    metrics: Mapping[str, Any] = {}
    """The last value of each metric in the index of this machine."""
    packages: Mapping[str, str] = {}
    """The versions of the packages of its environment, if yurt built it and this machine has them."""


Found = Mapping[str, tuple[Any, str]]
"""Values by key, each with its source."""


def compare(left: Side, right: Side) -> list[ComparedValue]:
    """Return all properties of two runs, part by part, including equal ones."""
    rows: list[ComparedValue] = []
    for (part, mine), (_part, other) in zip(_parts(left), _parts(right), strict=True):
        for key in dict.fromkeys([*mine, *other]):
            (a, a_source), (b, b_source) = mine.get(key, _NOTHING), other.get(key, _NOTHING)
            row = ComparedValue(
                part=part, key=key, same=_same(a, b), left=a, right=b, left_source=a_source, right_source=b_source
            )
            rows.append(row)
    return rows


_NOTHING = (msgspec.UNSET, "")


def _parts(side: Side) -> Iterator[tuple[Part, Found]]:
    run, status = side.run, side.status
    yield (
        "command",
        _given(
            command=run.command,
            name=run.name,
            context=run.context,
            project=run.project,
            subfolder=run.subfolder,
            tags=run.tags,
            note=run.note,
            after=[each.run for each in run.after],
            retry_of=run.retry_of,
        ),
    )
    yield "parameters", {key: (value, "") for key, value in run.params.items()}
    code = run.code
    yield "code", _given(tree=code.tree, branch=code.branch, commit=code.commit, dirty=code.dirty)
    yield "environment", {**_environment(run), **_given(user=run.user, host=run.host, yurt_version=run.yurt_version)}
    yield "packages", {key: (version, "") for key, version in side.packages.items()}
    yield "resources", _resources(run)
    took = status.seconds
    if took is None and status.ended is not None and status.started is not None:
        took = status.ended - status.started
    outcome = _given(
        state=status.state,
        reason=status.reason,
        exit_code=status.exit_code,
        signal=status.signal,
        seconds=None if took is None else round(took, 1),
        node=status.node,
        restarts=status.restarts or None,
    )
    yield "outcome", {**outcome, **{f"metrics.{key}": (value, "") for key, value in side.metrics.items()}}


def _given(**values: Any) -> Found:
    """Return the values that are not empty."""
    return {key: (value, "") for key, value in values.items() if value not in (None, "", [])}


def _environment(run: Run) -> Found:
    found: dict[str, tuple[Any, str]] = {}
    for each in run.settings:
        if each.key == "variables":
            found |= _expanded(each.key, each.value, each.source)
        elif each.key not in SETTING_OF.values() and each.key not in EXPANDED:
            found[each.key] = (each.value, each.source)
    return found


def _resources(run: Run) -> Found:
    settings = {each.key: each for each in run.settings}
    found: dict[str, tuple[Any, str]] = {}
    for key, value in msgspec.structs.asdict(run.resources).items():
        if value is not None:
            setting = settings.get(SETTING_OF.get(key, key))
            found[key] = (value, setting.source if setting is not None else "")
    if "sbatch_options" in settings:
        found |= _expanded("sbatch_options", settings["sbatch_options"].value, settings["sbatch_options"].source)
    policy = msgspec.structs.asdict(run.restart_policy)
    return {**found, **{key: (value, "") for key, value in policy.items() if value}}


def _expanded(key: str, value: Any, source: str) -> Found:
    if not isinstance(value, Mapping):
        return {key: (value, source)}
    return {f"{key}.{name}": (each, source) for name, each in value.items()}


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: 1, 1.0 and true differ."""
    if left is msgspec.UNSET or right is msgspec.UNSET:
        return left is right
    return msgspec.json.encode(left, order="sorted") == msgspec.json.encode(right, order="sorted")
