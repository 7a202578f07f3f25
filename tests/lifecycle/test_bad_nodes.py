"""Nodes that failed are avoided for some days, at most half of a partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.store.test_runs import run as run_number
from yurt.backends.slurm.states import UNLAUNCHED
from yurt.contexts import bad_nodes
from yurt.lifecycle.outbox import refused
from yurt.lifecycle.refresh import refresh
from yurt.model import ids
from yurt.model.facts import Facts, NodeKind, Partition
from yurt.model.run import Plan, Resources, RestartPolicy, RunRef, Status
from yurt.model.state import TERMINATING, Observation
from yurt.store import BadNode, Store
from yurt.testing.pods import Pods

FACTS = Facts(
    probed_at=0,
    user="alice",
    host="login",
    partitions=[Partition(name="main", default=True, nodes=[NodeKind(count=5, cpus=8, memory_mb=8000)])],
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "yurt.db"))


def fail(store: Store, *nodes: str, ago: float = 0) -> None:
    for number, node in enumerate(nodes):
        store.note_bad_node("big", BadNode(node, time.time() - ago + number, "r", "its node failed"))


def test_latest_failures_are_avoided(store: Store) -> None:
    fail(store, "n1", "n2", "n3")
    asked, left = bad_nodes.avoiding(store, "big", Resources(), FACTS)
    assert (asked.exclude_nodes, left) == ("n3,n2", ["n3", "n2"]), "at most two of five nodes"
    assert bad_nodes.avoiding(store, "small", Resources(), FACTS) == (Resources(), [])
    assert bad_nodes.avoiding(store, "big", Resources(nodelist="n3"), FACTS)[1] == [], (
        "nodes requested by the user are not excluded"
    )
    mine = Resources(exclude_nodes="n3,n9")
    assert bad_nodes.avoiding(store, "big", mine, FACTS)[0].exclude_nodes == "n3,n9,n2,n1"
    assert bad_nodes.avoiding(store, "big", Resources(partition="other"), FACTS) == (Resources(partition="other"), [])


def test_nodes_are_avoided_for_some_days(store: Store) -> None:
    fail(store, "n1", ago=bad_nodes.DAYS * 86400 + 10)
    fail(store, "n2", ago=bad_nodes.DAYS * 86400 - 10)
    assert [each.node for each in bad_nodes.known(store, "big")] == ["n2"]
    assert store.forget_bad_node("big", "n2") and not store.forget_bad_node("big", "n2")
    assert bad_nodes.known(store, "big") == []


def test_failed_nodes_of_runs_are_recorded(store: Store) -> None:
    failed = Status(state="node_failed", node="n1")
    seen = {
        "a": Observation(record="node_failed", node="n1", reason="its node failed"),
        "b": Observation(record="node_failed", node="n[2-3]"),
        "c": Observation(record="failed", node="n4"),
        "d": Observation(record="node_failed"),
    }
    changed = {"a": failed, "b": failed, "c": failed, "d": Status(state="waiting", node="n5")}
    bad_nodes.note(store, "big", seen, changed)
    assert {each.node for each in bad_nodes.known(store, "big")} == {"n1", "n5"}


def sweep(store: Store) -> str:
    """A sweep of three submitted tasks with retries."""
    made = ids.make_sweep(time.time(), 1)
    run = msgspec.structs.replace(run_number(1), id=made, tasks=3, restart_policy=RestartPolicy(retries=2))
    plan = Plan(run=run, project_folder="/p", store="/s", words=[b"true"], sets=[{"n": n} for n in range(3)])
    store.add(run, Status(state="queued"), plan)
    store.change_tasks(made, whole=lambda status: msgspec.structs.replace(status, submitted_tasks="0-2", attempts=1))
    return made


def test_failed_nodes_of_tasks_are_recorded(store: Store) -> None:
    made = sweep(store)
    seen = {
        f"{made}.0": Observation(record="node_failed", node="n1", reason="its node failed"),
        f"{made}.1": Observation(live="running", node="n2", generation=1),
    }
    sweeps, tasks = refresh._next_task_statuses(store, seen, time.time(), None)
    assert list(sweeps) == [made] and tasks[f"{made}.0"].state == "waiting"
    bad_nodes.note(store, "big", seen, tasks)
    assert [(each.node, each.run) for each in bad_nodes.known(store, "big")] == [("n1", f"{made}.0")]


class Releasing(Pods):
    """Records the jobs to release."""

    def __init__(self) -> None:
        super().__init__()
        self.released: list[str] = []

    def release(self, jobs: Sequence[str]) -> None:
        self.released += jobs


def test_a_task_whose_launch_failed_is_released(store: Store) -> None:
    made, backend = sweep(store), Releasing()
    seen = {f"{made}.1": Observation(live="held", native=f"PENDING ({UNLAUNCHED})", unlaunched=True, job="7_1")}
    for _look in range(bad_nodes.LAUNCHES + 2):
        refresh._next_task_statuses(store, seen, time.time(), None)
        bad_nodes.release_held(store, backend, seen)
    assert backend.released == ["7_1"] * bad_nodes.LAUNCHES
    assert store.tasks(made)[1].retries == bad_nodes.LAUNCHES


class Closing(Pods):
    """Closes the gates of tasks; the first one had passed its gate."""

    def cancel_tasks(self, sweep: RunRef) -> dict[int, str]:
        del sweep
        return {0: "n0nce.7", 1: "cancelled"}


def test_a_rejected_task_that_passed_its_gate_is_observed_again(store: Store) -> None:
    """It must not stay in the outbox for ever: each later submission would be rejected too."""
    made = sweep(store)
    lost = Observation(record="node_failed", node="n1", reason="its node failed")
    refresh._next_task_statuses(store, {f"{made}.0": lost, f"{made}.1": lost}, time.time(), None)
    assert dict(store.pending_tasks(made)) == {0: 1, 1: 1}
    plan = store.plan(made)
    assert plan is not None and refused.give_up(store, plan, Closing(), "invalid partition")
    found = {number: (each.state, each.reason) for number, each in store.tasks(made).items()}
    assert found[0] == ("unknown", TERMINATING) and found[1] == ("failed", "invalid partition")
    assert store.pending_tasks(made) == []
