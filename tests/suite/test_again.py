"""Tests are repeated on a busy machine, and nothing is busy afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.environment import ROOT
from tools import again
from yurt.testing.waiting import eventually


def busy(parent: int) -> list[int]:
    """Return the busy processes that a process has started."""
    argv = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(parent)]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if again.BURN.split("\n")[0] in line]


def test_failures_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    codes = [1, 0, 1]

    def run(words: list[str], outcomes: Path) -> int:
        assert words == [] and len(busy(os.getpid())) == round(0.5 * (os.cpu_count() or 1))
        code = codes.pop()
        flaky = "failed" if code else "passed"
        outcomes.write_text(json.dumps({"a::good": "passed", "a::flaky": flaky, "a::slow": "skipped"}))
        return code

    assert again.repeat(3, 0.5, 0, run) == 1
    shown = capfd.readouterr().out
    assert "failed 2 of 3: a::flaky\ntest: failed never: 1 test\n" in shown
    assert busy(os.getpid()) == []


@pytest.mark.parametrize(("code", "result"), [(0, 0), (5, 1), (-9, 1)])
def test_a_repetition_without_a_result(code: int, result: int) -> None:
    assert again.repeat(1, 0, 0, lambda _words, _outcomes: code) == result


def test_ctrl_c_ends_all_repetitions() -> None:
    calls: list[Path] = []

    def run(_words: list[str], outcomes: Path) -> int:
        calls.append(outcomes)
        return 2

    assert again.repeat(3, 0, 0, run) == 1 and len(calls) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_load_ends_with_the_tool(number: signal.Signals) -> None:
    script = "import time\nfrom tools import again\nwith again.busy(2):\n print('busy', flush=True)\n time.sleep(600)"
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tool:
        assert tool.stdout is not None and tool.stdout.readline() == "busy\n"
        burning = busy(tool.pid)
        assert len(burning) == 2
        tool.send_signal(number)
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in burning))


def test_a_cgroup_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(again, "CGROUPS", tmp_path)
    with pytest.raises(again.NoQuotaError, match="needs cgroups in"):
        again.repeat(1, 0, 0.5, lambda _words, _outcomes: 0)


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_a_cgroup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int) -> None:
    monkeypatch.setattr(again, "CGROUPS", tmp_path)
    if version == 1:
        (tmp_path / "cpu").mkdir()
        (tmp_path / "cpu" / "cgroup.procs").touch()
        parent, limits = tmp_path / "cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
    else:
        (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
        parent, limits = tmp_path, {"cpu.max": "50000 100000"}
    with again.limited(0.5) as words:
        assert words[-1] == str(parent / "yurt-test" / "cgroup.procs")
        assert {file.name: file.read_text() for file in (parent / "yurt-test").iterdir()} == limits
