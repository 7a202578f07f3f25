"""Rules that follow from the facts about a site."""

from __future__ import annotations

import pytest

from yurt.model.facts import Facts, Partition, largest_array, partition_of_job
from yurt.model.live import Live, LivePartition

FACTS = Facts(
    probed_at=0, user="alice", host="login", partitions=[Partition(name="cpu"), Partition(name="main", default=True)]
)


@pytest.mark.parametrize(("requested", "found"), [(None, "main"), ("", "main"), ("cpu", "cpu"), ("cpu,main", None)])
def test_the_partition_of_a_job(requested: str | None, found: str | None) -> None:
    assert partition_of_job(requested, FACTS) == (requested or "main")
    partition = FACTS.partition_of(requested)
    assert (partition and partition.name) == found


def test_the_partition_of_a_job_where_little_is_known() -> None:
    assert partition_of_job(None, None) == "" and partition_of_job("cpu", None) == "cpu"
    live = Live(at=0, host="login", partitions=[LivePartition(name="cpu"), LivePartition(name="main", default=True)])
    assert partition_of_job(None, live) == "main" and partition_of_job(None, Live(at=0, host="login")) == ""


@pytest.mark.parametrize(("max_array", "tasks"), [(101, 100), (1001, 1000), (1, 1), (0, 1)])
def test_the_largest_array_is_one_less_than_slurms_limit(max_array: int, tasks: int) -> None:
    """Also where a site has no arrays: then Slurm says so."""
    facts = Facts(probed_at=0, user="alice", host="login", max_array=max_array)
    assert largest_array(facts) == tasks and largest_array(None) == 1000
