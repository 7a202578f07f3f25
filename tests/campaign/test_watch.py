"""A few cases of the campaign that kills whoever copies growing files; `make campaign` runs 50."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.site import SHARED
from tests.campaign.steps import Steps
from tests.campaign.watch import campaign
from yurt.lab import Lab


@pytest.mark.lab
def test_copies_are_the_files(lab: Lab, yurt_home: Path) -> None:
    outcome = campaign(lab, Steps(lab.cluster("alpha")).root / SHARED, 7, 1, ["both"])
    assert outcome.wrong == [] and outcome.size > 100_000
