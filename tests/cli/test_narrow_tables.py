"""Tables on a terminal with 80 columns: they fit, and rows stay distinguishable."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Callable

import msgspec
import pytest
from rich.cells import cell_len

from tests.lifecycle.test_run import FACTS
from tests.user import User
from yurt.cli import command_cell
from yurt.cli.tally_bar import TallyBar
from yurt.contexts import probe as context_probe
from yurt.lab import commands as lab
from yurt.lab.status import ClusterStatus, HostStatus, LabStatus
from yurt.model.facts import Partition
from yurt.model.run import Run, Status
from yurt.store import Store


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(draw: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines that a function prints on a terminal with 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(Terminal()) as terminal:
        draw()
    return lines_of(terminal.getvalue())


def lines_of(text: str) -> list[str]:
    lines = [re.sub("\033\\[[0-9;]*m", "", line).rstrip() for line in text.replace("\r", "").split("\n")]
    assert max(map(cell_len, lines)) <= 80, lines
    return lines


@pytest.mark.parametrize(
    ("commands", "width", "drawn"),
    [
        (
            ["train.py --data x --lr 1", "train.py --data x --lr 2"],
            30,
            ["train.py --data x --lr 1", "train.py --data x --lr 2"],
        ),
        (["train.py --data x --lr 1", "train.py --data x --lr 2"], 20, ["train.py … --lr 1", "train.py … --lr 2"]),
        (["train.py --data x --lr 1", "train.py --data x --lr 2"], 12, ["… --lr 1", "… --lr 2"]),
        (["train.py --data x --lr 1", "train.py --data x --lr 2"], 6, ["… --l…", "… --l…"]),
        (["train.py --data x", "train.py --data x"], 12, ["train.py --…", "train.py --…"]),
        (["train.py --lr 1", "eval.py --lr 1"], 12, ["train.py --…", "eval.py --l…"]),
        (["train.py", "train.py --lr 1"], 10, ["train.py", "… --lr 1"]),
        (["a"], 10, ["a"]),
    ],
)
def test_what_differs_between_commands_stays(commands: list[str], width: int, drawn: list[str]) -> None:
    cells = command_cell.cells([command.split() for command in commands])
    shown = [cell.draw(width, paint=False) for cell in cells]
    assert [each.rstrip() for each in shown] == drawn
    assert {cell_len(each) for each in shown} == {width}


def test_ps_shows_the_arguments_that_differ(user: User) -> None:
    data = "/a/very/long/path/of/some/data/set/that/all/runs/share"
    with Store(f"{user.home}/data/yurt.db") as index:
        for number in range(3):
            run = Run(
                id=f"1nfaaa{number}-aaaa{number}",
                context="local",
                context_type="local",
                project="p-0000",
                source="/p",
                created=time.time(),
                command=["train.py", "--data", data, "--seed", str(number)],
                folder="/nowhere",
            )
            index.add(run, Status(state="failed", reason="killed by signal 9 (KILL), which takes many words to say"))
    _title, *rows = lines_of(user.spawn("ps", "--cached").read())[:4]
    assert [re.findall(r"--seed (\d)", row) for row in rows] == [["2"], ["1"], ["0"]]


def test_prune_prints_reasons_below_the_runs(user: User) -> None:
    done = user.quick("run", "--wait", "--json", "--name", "warm-up", "sh", "-c", 'touch "$YURT_OUTPUTS/model"')
    run = done.json["data"]["run"]["id"]
    _progress, kept, table = user.spawn("prune", "--dry-run").read().partition("kept: 1 run")
    lines = lines_of(kept + table)
    title = next(at for at, line in enumerate(lines) if line.startswith("run "))
    assert lines[title].split() == ["run", "name", "context", "state", "age", "size", "results"]
    assert lines[title + 1].split()[:3] == [run, "warm-up", "local"]
    assert lines[title + 2].startswith("  it was never fetched, so it has the only copy of its outputs; run `yurt"), (
        lines
    )
    (row,) = (line for line in user.quick("prune", "--dry-run").out.splitlines() if line.startswith(run))
    assert "it has the only copy of its outputs" in row, "a pipe gets one line for each run"


def test_lab_status(monkeypatch: pytest.MonkeyPatch) -> None:
    login = HostStatus(
        name="login",
        role="login",
        up=True,
        address="192.168.200.11",
        outside="192.168.100.11",
        daemons=["sshd"],
        missing=[],
        slurm="",
        memory=60 << 20,
    )
    node = msgspec.structs.replace(login, name="n1", outside="", daemons=["munged"], missing=["slurmd"], slurm="down")
    status = LabStatus(
        instance="default",
        folder="/lab",
        ssh_config="/lab/ssh_config",
        linked=True,
        limits="v1",
        clusters=[
            ClusterStatus(name="alpha", context="alpha", up=True, slurm="22.05.8", hosts=[login, node], index=None)
        ],
        memory=1 << 20,
    )
    lines = drawn(lambda: lab._print_status(status), monkeypatch)
    assert lines[0].split() == ["host", "address", "slurm", "daemons", "memory"]
    assert re.split("  +", lines[2]) == [
        "alpha:n1",
        "192.168.200.11",
        "down",
        "munged, slurmd is not running",
        "60 MiB",
    ]
    assert "outside: alpha:login 192.168.100.11" in lines


def test_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    long = Partition(name="a-partition-with-a-long-name", max_minutes=10_000, preempt="requeue", grace_seconds=30)
    tools = {f"tool-{number}": "/bin/tool" for number in range(20)}
    facts = msgspec.structs.replace(FACTS, partitions=[*FACTS.partitions, long], tools=tools)
    lines = drawn(lambda: context_probe.print_facts(facts), monkeypatch)
    at = next(at for at, line in enumerate(lines) if line.startswith("tools"))
    assert lines[at + 1].startswith(" " * (context_probe.LABELS + 1) + "tool-")
    assert any("6 d 22 h 40 min" in line for line in lines), "limits do not wrap"


@pytest.mark.parametrize(
    ("width", "drawn"),
    [
        (60, "━" * 17 + "x" * 3 + "  5/6 done, 1 failed: exit code 4"),
        (40, "━" * 6 + "x" + "  5/6 done, 1 failed: exit code 4"),
        (37, "━━━x  5/6 done, 1 failed: exit code 4"),
        (30, "━━━━━━━━xx  5/6 done, 1 failed"),
        (12, "━━━━━━x  5/6"),
    ],
)
def test_the_reason_of_a_sweep_where_there_is_room(width: int, drawn: str) -> None:
    bar = TallyBar({"completed": 5, "failed": 1}, "exit code 4")
    with contextlib.redirect_stdout(Terminal()):
        assert bar.draw(width, paint=False) == drawn
