"""Nodes that failed are left alone for some days, and never so many that few are left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from yurt.model.facts import Facts, NodeKind, Partition
from yurt.model.run import Asked, Status
from yurt.model.state import Sighting
from yurt.store import BadNode, Store
from yurt.verbs import bad_nodes

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


def test_the_last_that_failed_are_left_alone(store: Store) -> None:
    fail(store, "n1", "n2", "n3")
    asked, left = bad_nodes.avoiding(store, "big", Asked(), FACTS)
    assert (asked.exclude_nodes, left) == ("n3,n2", ["n3", "n2"]), "of five nodes two at most"
    assert bad_nodes.avoiding(store, "small", Asked(), FACTS) == (Asked(), [])
    assert bad_nodes.avoiding(store, "big", Asked(nodelist="n3"), FACTS)[1] == [], "who names nodes gets them"
    mine = Asked(exclude_nodes="n3,n9")
    assert bad_nodes.avoiding(store, "big", mine, FACTS)[0].exclude_nodes == "n3,n9,n2,n1"
    assert bad_nodes.avoiding(store, "big", Asked(partition="other"), FACTS) == (Asked(partition="other"), [])


def test_for_some_days(store: Store) -> None:
    fail(store, "n1", ago=bad_nodes.DAYS * 86400 + 10)
    fail(store, "n2", ago=bad_nodes.DAYS * 86400 - 10)
    assert [each.node for each in bad_nodes.known(store, "big")] == ["n2"]
    assert store.forget_bad_node("big", "n2") and not store.forget_bad_node("big", "n2")
    assert bad_nodes.known(store, "big") == []


def test_what_a_look_saw(store: Store) -> None:
    failed = Status(state="node_failed", node="n1")
    seen = {
        "a": Sighting(record="node_failed", node="n1", reason="its node failed"),
        "b": Sighting(record="node_failed", node="n[2-3]"),
        "c": Sighting(record="failed", node="n4"),
        "d": Sighting(record="node_failed"),
    }
    changed = {"a": failed, "b": failed, "c": failed, "d": Status(state="waiting", node="n5")}
    bad_nodes.note(store, "big", seen, changed)
    assert {each.node for each in bad_nodes.known(store, "big")} == {"n1", "n5"}
