"""A few uploads under faults at chosen moments; `make campaign` runs random ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.uploads import FAULTS, MB, Case, Draw, Episode, campaign, draw, judge
from yurt.lab import Lab

USUAL: Draw = {"size": 2 * MB, "rate": 2 * MB, "seconds": 0.5, "salt": 1, "fraction": 0.5, "group": True}
USUAL |= {"renewed": True, "copy": True, "ending": "reset", "connections": 1, "victim": "master", "then": "agent"}

CHOSEN: list[tuple[str, Draw]] = [
    ("receiver", {"program": "head", "step": 12, "when": "after", "what": "all"}),
    ("receiver", {"program": "git", "step": 1, "when": "before", "what": "all"}),
    ("cut", {"then": "ps"}),
]


@pytest.mark.lab
@pytest.mark.timeout(400)
def test_every_upload_is_completed_once(lab: Lab, tmp_path: Path) -> None:
    episodes = [
        Episode("alpha", fault, f"{fault}-{number}", {**USUAL, "salt": number, **own})
        for number, (fault, own) in enumerate(CHOSEN)
    ]
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, tmp_path, Path(runtime), episodes, patience=200)
    print((tmp_path / "log").read_text())
    assert found.wrong == []
    assert found.missed == [], "a fault came too late to have an effect"
    assert [len(case.sums) for case in found.cases] == [1] * len(CHOSEN)


def test_the_same_seed_gives_the_same_uploads() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    assert {episode.fault for episode in draw(3, 1)} == set(FAULTS)


@pytest.mark.parametrize(
    ("state", "reason", "sums", "cancelled", "wrong"),
    [
        ("completed", "", ["a"], False, 0),
        ("completed", "", ["b"], False, 1),
        ("completed", "", [], False, 1),
        ("completed", "", ["a", "a"], False, 1),
        ("cancelled", "cancelled before it started", [], True, 0),
        ("cancelled", "cancelled before it started", ["a"], True, 1),
        ("cancelled", "cancelled", ["a"], False, 1),
        ("waiting", "", [], False, 1),
        ("failed", "exit code 1", ["a"], False, 1),
    ],
)
def test_the_judge(state: str, reason: str, sums: list[str], cancelled: bool, wrong: int) -> None:
    assert len(judge(Case("x", "client", state, reason, sums, "a", cancelled))) == wrong
