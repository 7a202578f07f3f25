"""A few submissions under each fault, at the most critical moments; `make campaign` runs hundreds of random ones."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.campaign.campaign import Campaign, Episode, writer
from tests.campaign.faults import FAULTS
from tests.campaign.judge import count
from tests.campaign.moments import Draw
from yurt.lab import Lab

PATIENCE = 200
QUICK = {"rest": 0.3, "snapshot": False}
CODE = {"rest": 0.3, "snapshot": True}
RESET = {"ending": "reset", "greeting": False, "connections": 1}
STALL = {"ending": "stall", "greeting": False, "connections": 1}
AT_SBATCH = {"step": 1, "program": "sbatch"}
NODE = {"administrator": True, "rest": 150, "lease": 12}


@dataclass(frozen=True)
class Piece:
    """Episodes on one cluster, one after the other, and cells of the table that must not be 0: (fault, column)."""

    cluster: str
    episodes: tuple[tuple[str, Draw], ...]
    shown: tuple[tuple[str, str], ...] = ()


PIECES = {
    "node that hangs, cut link": Piece(
        "alpha",
        (
            ("node", {**NODE, "hangs": True, "seconds": 0}),
            ("cut", {**QUICK, **RESET, "direction": "up", "fraction": 0.9}),
            ("cut", {**QUICK, **RESET, "direction": "down", "fraction": 0.83}),
            ("cancel", {**QUICK, "how": "step", "step": 12, "when": "before"}),
        ),
        (("node", "restarted"), ("cancel", "cancelled")),
    ),
    "node cut off, two clients": Piece(
        "alpha",
        (
            ("node", {**NODE, "hangs": False, "seconds": 1.5}),
            ("twins", {**QUICK, "mode": "copy", "held": True, "together": True}),
            ("client", {**QUICK, **AT_SBATCH, "when": "after", "linger": 0.2}),
        ),
        (("node", "restarted"), ("twins", "refused")),
    ),
    "ssh, shell, cancelled": Piece(
        "alpha",
        (
            ("ssh", {**QUICK, **AT_SBATCH, "when": "before", "victim": "master", "overtaken": True}),
            ("shell", {**QUICK, **AT_SBATCH, "when": "after", "what": "inner"}),
            ("shell", {**CODE, "step": 9, "program": "any", "when": "after", "what": "all"}),
            ("cancel", {**QUICK, "rest": 2, "how": "lost", "by": "yurt", "when": "after"}),
        ),
        (("ssh", "refused"),),
    ),
    "truncated, denied": Piece(
        "alpha",
        (
            ("truncate", {**CODE, **RESET, "direction": "up", "fraction": 0.3, "filler": 40000}),
            ("truncate", {**QUICK, "head": 3, "percent": 90}),
            ("denied", {**QUICK, "lost": True}),
        ),
    ),
    "silent controller": Piece("beta", (("silence", {**QUICK, "mode": "freeze", "seconds": 10.5, "at_sbatch": True}),)),
    "crashed controller": Piece("beta", (("crash", {**QUICK, "startable": False, "late": 0, "calm": True}),)),
    "stalled link, truncated": Piece(
        "beta",
        (
            ("cut", {**QUICK, **STALL, "direction": "down", "fraction": 0.7, "victim": "yurt", "patience": 4}),
            ("truncate", {**QUICK, "head": 1, "percent": 60}),
            ("truncate", {**CODE, "head": 4, "percent": 0}),
            ("denied", {**QUICK, "lost": False}),
        ),
    ),
    "shell, ssh, client": Piece(
        "beta",
        (
            ("shell", {**QUICK, **AT_SBATCH, "when": "before", "what": "self", "seconds": 0.02}),
            ("ssh", {**CODE, "step": 6, "program": "any", "when": "after", "victim": "session", "linger": 0.1}),
            ("client", {**QUICK, **AT_SBATCH, "when": "before", "overtaken": True}),
        ),
        (("client", "refused"),),
    ),
    "two yurts, cancelled": Piece(
        "beta",
        (
            ("twins", {**QUICK, "mode": "same", "held": False, "together": False}),
            ("cancel", {**QUICK, "how": "waiting"}),
            ("cancel", {**QUICK, "rest": 20, "how": "later", "seconds": 1, "kill": 6, "what": "inner"}),
        ),
        (("cancel", "cancelled"), ("cancel", "once")),
    ),
    "connection, kept scripts": Piece(
        "alpha",
        (
            ("transport", {**QUICK, "how": "kept", "change": "evil", "at": 0}),
            ("transport", {**QUICK, "how": "kept", "change": "flicker", "at": 0}),
            ("transport", {**QUICK, "how": "master", "point": "request", "times": 1}),
            ("transport", {**QUICK, "how": "answer", "point": "opened", "answer": "garbage", "times": 1}),
            ("transport", {**QUICK, "how": "descriptors", "free": 2}),
            ("transport", {**QUICK, "how": "sessions", "most": 1, "seconds": 1}),
        ),
    ),
}
"""Pieces by name. Later episodes of a piece run while Slurm requeues the job of a disconnected node."""

SLOW = [*(name for name in PIECES if name.startswith("node ")), "stalled link, truncated", "truncated, denied"]
SLOW.append("connection, kept scripts")


@pytest.mark.lab
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PIECES)
@pytest.mark.slow(*SLOW)
def test_code_starts_exactly_once(lab: Lab, tmp_path: Path, name: str) -> None:
    piece = PIECES[name]
    episodes = [Episode(piece.cluster, fault, number, draw) for number, (fault, draw) in enumerate(piece.episodes)]
    with (tmp_path / "log").open("w") as log, tempfile.TemporaryDirectory(prefix="yr", dir="/tmp") as runtime:
        outcome = Campaign(lab, tmp_path, Path(runtime), writer(log)).run(episodes, patience=PATIENCE)
    print((tmp_path / "log").read_text())
    assert outcome.violations == []
    table = count(outcome.cases)
    assert table.keys() == {episode.fault for episode in episodes}
    for fault, row in table.items():
        assert row.once + row.cancelled == row.runs, (fault, row)
        assert (row.twice, row.never, row.killed, row.stranded) == (0, 0, 0, 0), (fault, row)
    assert outcome.missed == [], "a fault came too late to have an effect"
    for fault, column in piece.shown:
        assert getattr(table[fault], column), (fault, column, table[fault])


def test_the_pieces_cover_all_faults() -> None:
    assert {fault for piece in PIECES.values() for fault, _draw in piece.episodes} == set(FAULTS)
