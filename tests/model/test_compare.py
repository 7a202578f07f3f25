"""Comparison of two runs: different, equal and missing properties."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from yurt.model.compare import ComparedValue, Side, compare
from yurt.model.run import Chosen, Code, Resources, RestartPolicy, Run, Status

BASE = Run(
    id="1nfjkdg-aaaaa",
    context="alpha",
    context_type="slurm",
    project="proj-0000",
    source="/p",
    created=0,
    command=["train.py"],
    folder="/f",
    params={"lr": 0.1, "none": None},
    resources=Resources(cpus=2, minutes=120),
    code=Code(tree="1" * 40, commit="2" * 40, branch="main"),
    settings=[Chosen("time", "2h", "contexts.yaml:3"), Chosen("variables", {"A": "1", "B": "2"}, "flag")],
    user="alice",
    host="laptop",
    yurt_version="0.1.0",
)


def rows(left: Side, right: Side) -> dict[tuple[str, str], tuple[Any, Any]]:
    return {(row.part, row.key): (row.left, row.right) for row in compare(left, right) if not row.same}


def test_a_run_and_itself() -> None:
    status = Status(state="failed", exit_code=1, started=1, ended=3, node="n1")
    found = compare(Side(BASE, status, {"loss": 1}), Side(BASE, status, {"loss": 1}))
    assert all(row.same for row in found) and {row.part for row in found} == {
        "command",
        "parameters",
        "code",
        "environment",
        "resources",
        "outcome",
    }
    assert ("parameters", "none", None) in {(row.part, row.key, row.left) for row in found if row.key == "none"}


CHANGES: list[tuple[dict[str, Any], tuple[str, str], tuple[Any, Any]]] = [
    ({"command": ["other.py"]}, ("command", "command"), (["train.py"], ["other.py"])),
    ({"context": "beta"}, ("command", "context"), ("alpha", "beta")),
    ({"name": "x"}, ("command", "name"), (msgspec.UNSET, "x")),
    ({"retry_of": "1nfjkdg-bbbbb"}, ("command", "retry_of"), (msgspec.UNSET, "1nfjkdg-bbbbb")),
    ({"tags": ["x"]}, ("command", "tags"), (msgspec.UNSET, ["x"])),
    ({"params": {"lr": 0.1}}, ("parameters", "none"), (None, msgspec.UNSET)),
    ({"params": {"lr": "0.1", "none": None}}, ("parameters", "lr"), (0.1, "0.1")),
    ({"resources": Resources(cpus=4, minutes=120)}, ("resources", "cpus"), (2, 4)),
    ({"resources": Resources(cpus=2)}, ("resources", "minutes"), (120, msgspec.UNSET)),
    ({"restart_policy": RestartPolicy(max_requeues=3)}, ("resources", "max_requeues"), (msgspec.UNSET, 3)),
    ({"user": "bob"}, ("environment", "user"), ("alice", "bob")),
    ({"yurt_version": "9"}, ("environment", "yurt_version"), ("0.1.0", "9")),
    ({"code": Code(tree="3" * 40, commit="2" * 40, branch="main")}, ("code", "tree"), ("1" * 40, "3" * 40)),
]


@pytest.mark.parametrize(("change", "key", "values"), CHANGES)
def test_one_thing_differs(change: dict[str, Any], key: tuple[str, str], values: tuple[Any, Any]) -> None:
    other = msgspec.structs.replace(BASE, **change)
    assert rows(Side(BASE, Status()), Side(other, Status())) == {key: values}


@pytest.mark.parametrize(("left", "right"), [(1, 1.0), (1, True), (0, False), ("1", 1), (None, "null"), ([1], [1.0])])
def test_values_that_are_equal_in_python_differ(left: Any, right: Any) -> None:
    sides = [Side(msgspec.structs.replace(BASE, params={"x": each}), Status()) for each in (left, right)]
    assert rows(*sides) == {("parameters", "x"): (left, right)}


def test_the_order_of_keys_is_no_difference() -> None:
    values = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    sides = [Side(msgspec.structs.replace(BASE, params={"x": each}), Status()) for each in values]
    assert rows(*sides) == {}


def test_settings_come_with_their_sources() -> None:
    settings = [
        Chosen("time", "2h", "flag"),
        Chosen("variables", {"B": "3"}, "yurt.yaml:2"),
        Chosen("modules_to_load", ["cuda"], "flag"),
        Chosen("sbatch_options", {"constraint": "fast"}, "contexts.yaml:4"),
    ]
    other = msgspec.structs.replace(BASE, settings=settings)
    found = {(row.part, row.key): row for row in compare(Side(BASE, Status()), Side(other, Status()))}
    differing = {key for key, row in found.items() if not row.same}
    assert differing == {
        ("environment", "variables.A"),
        ("environment", "variables.B"),
        ("environment", "modules_to_load"),
        ("resources", "sbatch_options.constraint"),
    }
    limit = found["resources", "minutes"]
    assert limit.same and (limit.left_source, limit.right_source) == ("contexts.yaml:3", "flag")
    variable = found["environment", "variables.B"]
    assert (variable.left_source, variable.right_source) == ("flag", "yurt.yaml:2")


def test_the_outcome() -> None:
    good = Status(state="completed", exit_code=0, started=10, ended=20.04, node="n1")
    bad = Status(state="failed", reason="exit code 3", exit_code=3, started=10, ended=25, node="n2", restarts=2)
    assert rows(Side(BASE, good, {"loss": 0.5, "step": 1}), Side(BASE, bad, {"loss": "NaN"})) == {
        ("outcome", "state"): ("completed", "failed"),
        ("outcome", "reason"): (msgspec.UNSET, "exit code 3"),
        ("outcome", "exit_code"): (0, 3),
        ("outcome", "seconds"): (10.0, 15.0),
        ("outcome", "node"): ("n1", "n2"),
        ("outcome", "restarts"): (msgspec.UNSET, 2),
        ("outcome", "metrics.loss"): (0.5, "NaN"),
        ("outcome", "metrics.step"): (1, msgspec.UNSET),
    }


def test_the_run_time_is_the_total_of_all_starts() -> None:
    whole = Status(state="completed", started=10, ended=20)
    pieces = Status(state="completed", started=10, ended=500, seconds=12.34)
    assert rows(Side(BASE, whole), Side(BASE, pieces)) == {("outcome", "seconds"): (10, 12.3)}


def test_a_missing_side_is_not_in_the_json() -> None:
    row = ComparedValue(part="parameters", key="x", same=False, left=None)
    assert msgspec.to_builtins(row) == {"part": "parameters", "key": "x", "same": False, "left": None}
