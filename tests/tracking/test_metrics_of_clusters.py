"""Metrics of runs that are running on two clusters: real Slurm, real ssh."""

from __future__ import annotations

import pytest

from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


def logs(*losses: float) -> str:
    lines = "".join(f'{{"time":{1000 + at},"step":{at},"loss":{loss} }}\n' for at, loss in enumerate(losses))
    return f"printf '%s' '{lines}' >> \"$YURT_RUN_DIR/metrics.jsonl\""


def running(laptop: Laptop) -> list[str]:
    """Start a run on each cluster that logs a loss; wait until yurt has it."""
    runs = [
        laptop.run(context, "sh", "-c", f"{logs(4, 2, loss)}; {PATIENT}")["run"]["id"]
        for context, loss in (("alpha", 1), ("beta", 3))
    ]
    for run in runs:
        laptop.starts(run)
    eventually(lambda: all(laptop.quick("metrics", run).code == 0 for run in runs))
    return runs


def test_runs_of_two_clusters_while_they_run(laptop: Laptop) -> None:
    runs = running(laptop)
    for run, loss in zip(runs, (1, 3), strict=True):
        shown = laptop.quick("show", run, "--json").json["data"]
        assert shown["status"]["state"] == "running"
        assert shown["metrics"] == [{"name": "loss", "value": loss, "step": 2}]
    both = laptop.quick("metrics", *runs, "--plot", "loss")
    assert (both.code, both.err) == (0, "")
    assert f"o {runs[0]}  1 at step 2" in both.out and f"x {runs[1]}  3 at step 2" in both.out
    for run in runs:
        laptop.quick("cancel", run)


@pytest.mark.slow
def test_site_that_does_not_respond(laptop: Laptop, lab: Lab) -> None:
    runs = running(laptop)
    before = laptop.quick("metrics", *runs, "--csv")
    lab.faults.cut("alpha")
    try:
        copied = laptop.quick("metrics", *runs, "--csv")
        assert copied.code == 0 and copied.out == before.out
        assert "alpha" in copied.err and "showing what was copied to this machine before" in copied.err
        shown = laptop.quick("show", runs[0], "--json").json
        assert shown["data"]["run"]["id"] == runs[0] and shown["warnings"]
    finally:
        lab.faults.heal("alpha")
    for run in runs:
        laptop.quick("cancel", run)
