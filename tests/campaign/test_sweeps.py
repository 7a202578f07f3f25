"""A few sweeps under faults at the most critical moments; `make campaign` runs random ones."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.campaign.sweeps import FAULTS, Draw, Episode, Task, campaign, draw, judge
from yurt.lab import Lab

USUAL: Draw = {"tasks": 4, "rest": 0.2, "parallel": None, "fraction": 0.9, "seconds": 0.3, "step": 1}
USUAL |= {"when": "after", "overtaken": True, "one": True, "direction": "down", "retry": True, "killed": False}

PIECES: dict[str, tuple[str, list[tuple[str, Draw]]]] = {
    "client killed, cancelled": (
        "alpha",
        [("client", {}), ("cancel", {"one": False, "when": "before", "rest": 1})],
    ),
    "little room": ("alpha", [("room", {"tasks": 5})]),
    "client killed, two clients": ("beta", [("client", {"when": "before"}), ("twins", {"when": "before"})]),
    "link cut": ("beta", [("cut", {})]),
}
"""Sweeps on one cluster, one after the other."""


@pytest.mark.lab
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PIECES)
def test_every_task_starts_once(lab: Lab, tmp_path: Path, name: str) -> None:
    cluster, chosen = PIECES[name]
    episodes = [
        Episode(cluster, fault, f"{fault}-{number}", {**USUAL, **own}) for number, (fault, own) in enumerate(chosen)
    ]
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, tmp_path, Path(runtime), episodes, patience=200)
    print((tmp_path / "log").read_text())
    assert found.wrong == []
    assert found.missed == [], "a fault came too late to have an effect"
    assert {task.fault for task in found.tasks} == {episode.fault for episode in episodes}
    begun = Counter(task.fault for task in {task.id: task for task in found.tasks}.values() if task.restarts)
    expected = {episode.fault: episode.draw["tasks"] for episode in episodes if episode.fault != "cancel"}
    expected |= {"room": expected["room"] + 4} if "room" in expected else {}
    assert {fault: begun[fault] for fault in expected} == expected


def test_the_same_seed_gives_the_same_sweeps() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    assert {episode.fault for episode in draw(3, 1)} == set(FAULTS)


@pytest.mark.parametrize(
    ("state", "reason", "starts", "cancelled", "wrong"),
    [
        ("completed", "", ["0"], False, 0),
        ("completed", "", [], False, 1),
        ("completed", "", ["0", "0"], False, 1),
        ("cancelled", "cancelled before it started", [], True, 0),
        ("cancelled", "cancelled before it started", ["0"], True, 1),
        ("cancelled", "cancelled", ["0"], True, 0),
        ("cancelled", "cancelled", ["0"], False, 1),
        ("waiting", "", [], False, 1),
        ("failed", "exit code 1", ["0"], False, 1),
    ],
)
def test_the_judge(state: str, reason: str, starts: list[str], cancelled: bool, wrong: int) -> None:
    assert len(judge(Task("s1-x.0", "client", state, reason, starts, cancelled))) == wrong


@pytest.mark.parametrize(
    ("native", "reused", "jobs", "wrong"),
    [
        ("CANCELLED by 0", False, [], 0),
        ("CANCELLED by 0", False, ["26_0"], 0),
        ("CANCELLED by 0", False, ["18_0"], 1),
        ("CANCELLED by 0", False, ["26_0", "26_0"], 1),
        ("CANCELLED", True, [], 0),
        ("CANCELLED", True, ["18_0"], 1),
        ("CANCELLED", False, [], 1),
    ],
)
def test_the_judge_of_a_task_that_slurm_cancels(native: str, reused: bool, jobs: list[str], wrong: int) -> None:
    """Slurm reuses job ids after a crash. The job of a second client may run the task."""
    task = Task(
        id="s1-x.0",
        fault="twins",
        state="cancelled",
        reason="cancelled outside yurt",
        restarts=["0" for _each in jobs],
        cancelled=False,
        native=native,
        job="18_0",
        jobs=jobs,
        reused=reused,
    )
    assert len(judge(task)) == wrong
