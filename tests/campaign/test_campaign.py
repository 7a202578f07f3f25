"""A few submissions under every fault, at the moments that hurt most; `make campaign` draws hundreds."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.campaign.campaign import Campaign, Episode, Outcome, writer
from tests.campaign.faults import FAULTS, Draw
from tests.campaign.judge import count
from yurt.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240)]

PATIENCE = 60
QUICK = {"rest": 0.3, "snapshot": False}
CODE = {"rest": 0.3, "snapshot": True}
RESET = {"ending": "reset", "greeting": False, "connections": 1}

ALPHA: list[tuple[str, Draw]] = [
    ("node", {"administrator": True, "hangs": True, "seconds": 0, "rest": 150}),
    ("cut", {**QUICK, **RESET, "direction": "up", "fraction": 0.9}),
    ("cut", {**QUICK, **RESET, "direction": "down", "fraction": 0.83}),
    ("ssh", {**QUICK, "step": 1, "program": "sbatch", "when": "before", "victim": "master", "overtaken": True}),
    ("client", {**QUICK, "step": 1, "program": "sbatch", "when": "after", "linger": 0.2}),
    ("shell", {**QUICK, "step": 1, "program": "sbatch", "when": "after", "what": "inner"}),
    ("shell", {**CODE, "step": 9, "program": "any", "when": "after", "what": "all"}),
    ("truncate", {**CODE, **RESET, "direction": "up", "fraction": 0.3, "filler": 40000}),
    ("truncate", {**QUICK, "head": 3, "percent": 90}),
    ("node", {"administrator": True, "hangs": False, "seconds": 1.5, "rest": 150}),
    ("twins", {**QUICK, "mode": "copy", "held": True, "together": True}),
    ("denied", {**QUICK, "lost": True}),
    ("cancel", {**QUICK, "how": "step", "step": 12, "when": "before"}),
    ("cancel", {**QUICK, "rest": 2, "how": "lost", "by": "yurt", "when": "after"}),
]

BETA: list[tuple[str, Draw]] = [
    ("silence", {**QUICK, "mode": "freeze", "seconds": 10.5, "at_sbatch": True}),
    (
        "cut",
        {**QUICK, **RESET, "direction": "down", "fraction": 0.7, "ending": "stall", "victim": "yurt", "patience": 1},
    ),
    ("truncate", {**QUICK, "head": 1, "percent": 60}),
    ("truncate", {**CODE, "head": 4, "percent": 0}),
    ("shell", {**QUICK, "step": 1, "program": "sbatch", "when": "before", "what": "self", "seconds": 0.02}),
    ("ssh", {**CODE, "step": 6, "program": "any", "when": "after", "victim": "session", "linger": 0.1}),
    ("client", {**QUICK, "step": 1, "program": "sbatch", "when": "before", "overtaken": True}),
    ("twins", {**QUICK, "mode": "same", "held": False, "together": False}),
    ("denied", {**QUICK, "lost": False}),
    ("cancel", {**QUICK, "how": "waiting"}),
    ("cancel", {**QUICK, "rest": 20, "how": "later", "seconds": 1, "kill": 6, "what": "inner"}),
    ("crash", {**QUICK, "startable": False, "late": 0, "calm": True}),
]


@pytest.fixture(scope="module")
def outcome(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """All of it is brought about once, on both clusters side by side."""
    folder = tmp_path_factory.mktemp("campaign")
    episodes = [
        Episode(cluster, fault, number, draw)
        for cluster, drawn in (("alpha", ALPHA), ("beta", BETA))
        for number, (fault, draw) in enumerate(drawn)
    ]
    with (folder / "log").open("w") as log, tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        campaign = Campaign(lab, folder, Path(runtime), writer(log))
        outcome = campaign.run(episodes, patience=PATIENCE)
    print((folder / "log").read_text())
    return outcome


@pytest.mark.parametrize("fault", FAULTS)
def test_code_starts_exactly_once(outcome: Outcome, fault: str) -> None:
    row = count(outcome.cases)[fault]
    assert row.once + row.cancelled == row.runs
    assert (row.twice, row.never, row.killed, row.stranded) == (0, 0, 0, 0)


def test_nothing_else_went_wrong(outcome: Outcome) -> None:
    assert outcome.violations == []


def test_the_faults_bit(outcome: Outcome) -> None:
    """A fault that comes too late proves nothing."""
    table = count(outcome.cases)
    assert outcome.missed == []
    assert table["twins"].refused and table["ssh"].refused + table["client"].refused, "duplicates met the gate"
    assert table["node"].again == 2
    assert table["cancel"].cancelled and table["cancel"].once, "some before their start, some after it"
