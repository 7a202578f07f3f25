"""The choice of a node for a dev node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.test_runs import run
from yurt.backends.slurm.live import read_nodes
from yurt.dev.desks import past
from yurt.dev.nodes import at_most_half, chosen, with_copy
from yurt.model.run import Resources, Status
from yurt.model.workspace import Version
from yurt.store import Store

LINES = """\
node|n1|main,gpu|MIXED|16|12|64000|32000|gpu:a100:4|gpu:a100:1|9.50
node|n2|main|IDLE|16|0|64000|0|||0.10
node|n3|main|IDLE|16|0|64000|0|||0.90
node|n10|main|MIXED|16|4|64000|8000|||0.00
node|n4|main|IDLE+DRAIN|16|0|64000|0|||0.00
node|n5|gpu|MIXED|32|2|128000|1000|gpu:a100:4|gpu:a100:3|1.00
node|n6|gpu|MIXED|32|2|128000|1000|gpu:h100:4|gpu:h100:1|1.00
node|odd
"""
NODES = read_nodes(LINES)


def test_nodes_of_the_site() -> None:
    assert [each.name for each in NODES] == ["n1", "n2", "n3", "n10", "n4", "n5", "n6"]
    assert (NODES[0].free_cpus, NODES[0].free_memory_mb, NODES[0].gpus[0].free) == (4, 32000, 3)
    assert (NODES[4].state, NODES[4].free_cpus) == ("drained", 0)


@pytest.mark.parametrize(
    ("wanted", "partition", "last", "avoid", "node"),
    [
        (Resources(), "main", "", (), "n2"),
        (Resources(), "main", "n10", (), "n10"),
        (Resources(), "main", "n4", (), "n2"),
        (Resources(), "main", "", ("n2",), "n3"),
        (Resources(cpus=16), "main", "n10", (), "n2"),
        (Resources(memory_mb=0), "main", "n10", (), "n2"),
        (Resources(gpus=1), "main", "", (), "n1"),
        (Resources(gpus=2), "gpu", "", (), "n6"),
        (Resources(gpus=2, gpu_type="a100"), "gpu", "n5", (), "n1"),
        (Resources(gpus=4), "main,gpu", "", (), ""),
        (Resources(cpus=64), "main", "", (), ""),
        (Resources(nodes="2"), "main", "", (), ""),
        (Resources(nodelist="n3"), "main", "", (), ""),
        (Resources(exclude_nodes="n[1-3]"), "main", "n2", (), ""),
        (Resources(), "other", "", (), ""),
    ],
)
def test_choice(wanted: Resources, partition: str, last: str, avoid: tuple[str, ...], node: str) -> None:
    assert chosen(NODES, wanted, partition=partition, last=last, avoid=avoid) == node


def test_the_node_with_the_newest_files_is_taken_although_it_failed() -> None:
    """It is back, and may have changes that no backup has. Other nodes that failed are not taken."""
    main = Resources()
    assert chosen(NODES, main, partition="main", last="n2", failed=["n2"]) == "n2"
    assert chosen(NODES, main, partition="main", last="n2", failed=["n2"], avoid=["n2"]) == "n3"
    assert chosen(NODES, main, partition="main", last="n4", failed=["n2"]) == "n3"
    assert chosen(NODES, Resources(gpus=2), partition="gpu", failed=["n1", "n6"]) == ""


def test_the_node_with_the_newest_files(tmp_path: Path) -> None:
    """The last node with the workspace; not one where a run just failed to start, nor one that another laptop left."""
    store = Store(str(tmp_path / "yurt.db"))
    ends = [("n1", 0), ("n2", 0), ("n3", 78), ("n1", 78), ("n3", 78)]
    for number, (node, code) in enumerate(ends):
        store.add(
            run(number, purpose="dev", name="a"), Status(state="failed", node=node, exit_code=code, reason="full")
        )
    last, failed = past(store, "a", "alpha")
    assert last is not None and last.status.node == "n2"
    assert [each.status.node for each in failed] == ["n3", "n1", "n3"]
    assert past(store, "b", "alpha") == (None, [])
    older, newer = (Version(number=1, time=when, host="n10.site") for when in (last.run.created - 1, 1e10))
    assert with_copy(NODES, older, last) == "n2"
    assert with_copy(NODES, newer, last) == "n10" == with_copy(NODES, older, None)
    assert with_copy(NODES[:1], newer, last) == "n2" and with_copy(NODES[:1], newer, None) == ""


def test_most_nodes_are_not_avoided() -> None:
    reasons = {"n3": "full", "n1": "full", "n2": "full"}
    assert at_most_half(NODES, "gpu", reasons) == {"n3": "full"}
    assert at_most_half(NODES, "main,gpu", reasons) == reasons
    assert at_most_half(NODES, "other", reasons) == {}
