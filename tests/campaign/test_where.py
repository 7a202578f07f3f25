"""A few queues of the campaign that compares `yurt where` with what happens; `make campaign` runs 100."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.driver import Stage
from tests.campaign.where import campaign, draw
from yurt.lab import Lab


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_true_start_is_in_the_range(lab: Lab, yurt_home: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        found = campaign(Stage(lab, tmp_path, Path(runtime)), 7, 10, print)
    assert found.right, found


def test_the_same_seed_gives_the_same_queues() -> None:
    assert [draw(7, number) for number in range(10)] == [draw(7, number) for number in range(10)]
    assert draw(7, 0) != draw(8, 0)
