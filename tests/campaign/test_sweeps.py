"""A few sweeps under faults at the moments that hurt most; `make campaign` draws more."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.sweeps import FAULTS, Draw, Episode, Outcome, Task, campaign, draw, judge
from yurt.lab import Lab

USUAL: Draw = {"tasks": 4, "rest": 0.2, "parallel": None, "fraction": 0.9, "seconds": 0.3, "step": 1}
USUAL |= {"when": "after", "overtaken": True, "one": True, "direction": "down", "retry": True, "killed": False}

CHOSEN: list[tuple[str, str, Draw]] = [
    ("alpha", "client", {}),
    ("alpha", "cancel", {"one": False, "when": "before", "rest": 1}),
    ("alpha", "room", {"tasks": 5}),
    ("beta", "client", {"when": "before"}),
    ("beta", "twins", {"when": "before"}),
    ("beta", "cut", {}),
]


@pytest.fixture(scope="module")
def outcome(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("sweeps")
    episodes = [
        Episode(cluster, fault, f"{fault}-{number}", {**USUAL, **own})
        for number, (cluster, fault, own) in enumerate(CHOSEN)
    ]
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, folder, Path(runtime), episodes, patience=60)
    print((folder / "log").read_text())
    return found


@pytest.mark.lab
@pytest.mark.timeout(240)
def test_every_task_starts_once(outcome: Outcome) -> None:
    assert outcome.wrong == []
    assert {task.fault for task in outcome.tasks} >= {"client", "room", "twins", "cut"}
    assert sum(len(task.restarts) for task in outcome.tasks) > 10


def test_the_same_seed_draws_the_same() -> None:
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
