"""The text of `yurt cluster`: words instead of bars, narrow columns, and hostile words of a site."""

from __future__ import annotations

import sys

import msgspec
import pytest

from tests.cli.test_hostile_words import EVIL, FACTS
from tests.cli.test_terminal import SAFE
from yurt.cli import app, bars, call, render
from yurt.contexts.cluster import Cluster
from yurt.contexts.cluster_text import print_cluster
from yurt.model.live import (
    Controller,
    FairShare,
    Live,
    LiveGpus,
    LiveJob,
    LiveNodes,
    LivePartition,
    NodeTrouble,
    Queue,
    Reservation,
)
from yurt.store import BadNode

PARTS: list[bars.Part] = [("idle", 3, "░", "green"), ("allocated", 1, "█", "cyan"), ("down", 1, "x", "red")]


@pytest.fixture(autouse=True)
def options(monkeypatch: pytest.MonkeyPatch) -> app.App:
    """The global options, as without any on the command line."""
    found = app.App()
    monkeypatch.setattr(call, "current", lambda: found)
    return found


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(render, "terminal_columns", lambda: 80)


@pytest.mark.usefixtures("terminal")
def test_a_bar_and_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = bars.BarCell(PARTS)
    assert cell.draw(cell.widest, paint=False) == "░░░░░░░░░░███xxx 3 idle, 1 allocated, 1 down"
    assert cell.draw(12, paint=False) == "░░░░░░██xx 5"
    assert len(cell.draw(3, paint=False)) == 3
    assert "\x1b[31mx" in cell.draw(12, paint=True)
    monkeypatch.setattr(call, "plain", lambda: True)
    assert bars.bar(PARTS, 10, paint=True) == "3 idle, 1 allocated, 1 down"
    assert cell.draw(cell.widest, paint=True) == "3 idle, 1 allocated, 1 down"


def test_words_in_a_pipe() -> None:
    assert bars.bar(PARTS, 10, paint=False) == "3 idle, 1 allocated, 1 down"
    assert bars.bar([], 10, paint=False) == "none"


NODES = LiveNodes(states={"idle": 1, EVIL: 1}, cpus=2, gpus=[LiveGpus(type=EVIL, total=1, free=1)], memory_mb=1)
LIVE = Live(
    at=0, host=EVIL, controllers=[Controller(host=EVIL, role=EVIL, up=True)], nodes=NODES,
    partitions=[LivePartition(name=EVIL, usable=False, why_not=EVIL, preempt=EVIL, nodes=NODES, max_nodes=3)],
    troubles=[NodeTrouble(node=EVIL, state="down", reason=EVIL, since=1.0)],
    queue=Queue(
        mine=[LiveJob(job=EVIL, state=EVIL, partition=EVIL, run=EVIL, reason=EVIL, factors={EVIL: 1})], mine_total=3,
    ),
    fair_share=[FairShare(account=EVIL, factor=0.5, usage=0.1, shares=0.2)],
    reservations=[Reservation(name=EVIL, nodes=EVIL, flags=[EVIL], starts_at=1.0, ends_at=2.0)], accounting_silent=True,
)  # fmt: skip
FOUND = Cluster(context=EVIL, live=LIVE, facts=FACTS, avoided_nodes=[BadNode(EVIL, 1.0, EVIL, EVIL)], notes=[EVIL])
SILENT = msgspec.structs.replace(FOUND, live=Live(at=0, host=EVIL, silent=EVIL))
HERE = msgspec.structs.replace(FOUND, live=msgspec.structs.replace(LIVE, load=0.5), facts=None)


@pytest.mark.parametrize("columns", [20, 40, 60])
def test_a_narrow_terminal_shows_the_names_of_partitions(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(render, "terminal_columns", lambda: columns)
    nodes = LiveNodes(states={"idle": 1}, cpus=128, free_cpus=100, memory_mb=900_000, free_memory_mb=900_000)
    partitions = [LivePartition(name="averylongname", nodes=nodes, max_nodes=100, max_minutes=1440)]
    print_cluster(Cluster(context="big", live=Live(at=0, host="h", nodes=nodes, partitions=partitions)), details=False)
    lines = capsys.readouterr().out.splitlines()
    (at,) = (at for at, line in enumerate(lines) if line.startswith("parti"))
    assert lines[at + 1].startswith("avery") and max(len(line) for line in lines[at : at + 2]) <= columns


@pytest.mark.parametrize("found", [FOUND, SILENT, HERE, Cluster(context=EVIL)])
@pytest.mark.parametrize("details", [True, False])
@pytest.mark.parametrize("on_terminal", [True, False])
def test_hostile_words(
    found: Cluster,
    details: bool,
    on_terminal: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    if on_terminal:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_cluster(found, details=details)
    shown = capsys.readouterr().out
    assert "owned" in shown and SAFE.fullmatch(shown) is not None, ascii(shown)
