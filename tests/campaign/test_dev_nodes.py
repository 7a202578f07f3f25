"""A few faults of dev nodes at chosen moments; `make campaign` causes random ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.dev_faults import Draw
from tests.campaign.dev_nodes import KINDS, MB, Episode, campaign, draw
from yurt.lab import Lab

USUAL: Draw = {"seed": "chosen", "size": 10 * MB, "fraction": 0.5, "delay": 0, "entries": 20, "back": True}
CHOSEN: list[tuple[str, Draw]] = [
    ("backup-holder", {"moment": "part", "other": True}),
    ("backup-child", {"moment": "begun", "other": False}),
    ("restore-holder", {"moment": "begun", "other": False}),
]


@pytest.mark.lab
@pytest.mark.timeout(600)
@pytest.mark.slow
def test_every_listed_version_restores(lab: Lab, yurt_home: Path, tmp_path: Path) -> None:
    episodes = [Episode("alpha", kind, number, {**USUAL, **own}) for number, (kind, own) in enumerate(CHOSEN)]
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(lab, tmp_path, Path(runtime), episodes)
    print((tmp_path / "log").read_text())
    assert found.wrong == []
    assert len(found.cases) == len(CHOSEN)


def test_the_same_seed_gives_the_same_faults() -> None:
    assert draw(3, 20) == draw(3, 20) != draw(4, 20)
    assert {episode.kind for episode in draw(3, len(KINDS))} == {*KINDS}
    assert {episode.kind for episode in draw(3, 9, ["power"])} == {"backup-power", "restore-power"}
