"""The tables of dev nodes on narrow terminals: names are never lost, and columns are left out rather than wrapped."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from tests.cli.test_narrow_tables import Terminal
from yurt.dev import backups as dev_backups
from yurt.dev import status as dev_status
from yurt.dev.backups import BackupList
from yurt.dev.holder import LastBackup
from yurt.dev.views import DevNode
from yurt.model.workspace import Version

LAST = LastBackup(number=3, time=1e9, reason="interval")
NODES = [
    DevNode(
        name=name,
        run="r",
        context="alpha",
        state="running",
        phase="ready",
        job="1234",
        node="n1",
        ends=4e9,
        workspace=f"/scratch/alice/work-{name}",
        backup=LAST,
        ssh=f"yurt-dev-{name}",
    )
    for name in ("paper", "thesis")
]
VERSIONS = [
    Version(number=12, time=1e9, reason="interval", host="n1", files=120, size=10**9, verified=True),
    Version(number=11, time=1e9, reason="down", host="n2", parent=3, fork=True, note="2 files changed meanwhile"),
]


def drawn(draw: Callable[[], None], columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stdout(Terminal()) as terminal:
        draw()
    return terminal.getvalue().splitlines()


@pytest.mark.parametrize(
    ("columns", "titles"),
    [
        (40, ["name", "context", "state", "node", "time left"]),
        (60, ["name", "context", "state", "node", "time left", "ssh"]),
        (200, ["name", "context", "state", "node", "job", "time left", "workspace", "last backup", "ssh"]),
    ],
)
def test_dev_status(columns: int, titles: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(lambda: dev_status._print(NODES), columns, monkeypatch)
    assert lines[0].split() == " ".join(titles).split() and max(map(len, lines)) <= columns
    assert [line.split()[:3] for line in lines[1:]] == [["paper", "alpha", "ready"], ["thesis", "alpha", "ready"]]


@pytest.mark.parametrize(
    ("columns", "titles"),
    [(40, ["version", "when", "why"]), (60, ["version", "when", "why", "size", "verified"])],
)
def test_dev_backups(columns: int, titles: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = BackupList(name="paper", context="alpha", folder="/b", size=10, versions=VERSIONS)
    lines = drawn(lambda: dev_backups._print(found), columns, monkeypatch)
    assert lines[0].split() == titles and max(map(len, lines)) <= columns
    assert lines[1].startswith("v12      2001-09-0") and lines[2].startswith("v11      2001-09-0")
    assert " ".join("".join(lines[3:-1]).split()) == "fork of v3; 2 files changed meanwhile"


def test_an_unread_status(capsys: pytest.CaptureFixture[str]) -> None:
    node = DevNode(name="paper", run="r", context="alpha", state="running", unread=True)
    dev_status.print_detail(node)
    shown = capsys.readouterr().out
    assert "last backup  unknown\n" in shown and "ready" not in shown and "state        running\n" in shown
