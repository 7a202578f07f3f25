"""An ordinary run on this machine: few programs, and the same files as job.sh and the scripts that submit write."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import executions
from tests.calls import YURT, call
from yurt.backends import scripts
from yurt.backends.job import script
from yurt.backends.local import own, runner, work_folder
from yurt.backends.local.backend import LocalBackend
from yurt.backends.local.process import born
from yurt.lifecycle.plan.plan import plan as planning
from yurt.lifecycle.plan.request import Request
from yurt.model import usage_samples
from yurt.model.context import LOCAL
from yurt.testing.runs import follow, submit
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

PROGRAMS = 8
"""Now six: yurt, git twice, Python for the process of the run, bash for job.sh, and the command."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A git project as the working directory."""
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("YURT_LOCAL_CPUS", "24")
    project = tmp_path / "proj"
    (project / "deep" / "folder").mkdir(parents=True)
    (project / "deep" / "folder" / "kept.txt").write_text("kept\n")
    (project / "link").symlink_to("deep")
    (project / "run.sh").write_text("#!/bin/sh\necho changed > deep/folder/kept.txt; echo new > new.txt\n")
    (project / "run.sh").chmod(0o755)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    monkeypatch.chdir(project)
    yield tmp_path
    for file in (tmp_path / "data").glob("projects/*/runs/*/winner"):
        pid = int(file.read_text().rpartition(".")[2])
        if born(pid) is not None and not (file.parent / "exit.json").exists():
            os.kill(pid, signal.SIGTERM)


def last(home: Path) -> Path:
    return max(home.glob("data/projects/*/runs/*"))


def test_it_starts_few_programs(home: Path) -> None:
    if not executions.available():
        pytest.skip("needs the Debian package strace, and a machine where it can trace processes")
    assert call("run", "--wait", "true").code == 0  # uploads the code
    for _attempt in range(20):  # on a busy machine, even this one may run long enough to be sampled
        found = executions.executions([YURT, "run", "--wait", "true"])
        ending = json.loads((last(home) / "exit.json").read_text())
        assert ending["code"] == 0
        if ending["usage"]["seconds"] < runner.SAMPLED_AFTER:
            break
    assert len(found) <= PROGRAMS, found


def ended(home: Path, *words: str) -> dict[str, Any]:
    """Run a command; return exit.json without times, and the remaining files with their content."""
    call("run", "--wait", *words)
    folder = last(home)
    eventually(lambda: born(int((folder / "winner").read_text().rpartition(".")[2])) is None)  # it tidies up
    ending = json.loads((folder / "exit.json").read_text())
    usage = ending.pop("usage")
    assert usage.pop("seconds") >= 0 and usage.pop("cpu_seconds") >= 0 and usage.pop("memory_mb", 1) > 0
    usage.pop("largest_process", None)  # job.sh does not know it
    assert ending.pop("job") == (folder / "winner").read_text().strip().partition(".")[2]
    assert abs(ending.pop("started") - time.time()) < 100 and ending.pop("ended") and ending.pop("seconds") < 9
    own_names = {
        "run.json",
        "plan.json",
        "job.sh",
        "data",
        "status.json",
        "winner",
        "gen.1",
        "end.1",
        "child.1",
        "usage",
    }
    files = [file for file in sorted(folder.rglob("*")) if file.name not in own_names | {"exit.json"}]
    left = {
        str(file.relative_to(folder)): "" if file.is_dir() else (file.read_text(), file.stat().st_mode & 0o777)
        for file in files
    }
    assert own_names <= {file.name for file in folder.iterdir()}
    assert all(file.stat().st_mode & 0o077 == 0 for file in folder.iterdir())
    return {**ending, "usage": usage, "left": left}


WRITES = """umask; cat link/folder/kept.txt; mkdir -p d/__pycache__; echo > d/__pycache__/x; echo > d/y; echo oops >&2
pwd -P | grep -c work; echo out > "$YURT_OUTPUTS/x"; rm link; ./run.sh"""


@pytest.mark.parametrize(
    "text",
    [WRITES, f"{WRITES}; exit 7", "kill -SEGV $$", f"{WRITES}; sleep 0.6"],
    ids=["ends", "fails", "crashes", "lasts"],
)
def test_it_leaves_what_job_sh_leaves(home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    ours = ended(home, "sh", "-c", text)
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")  # not ordinary: job.sh runs it
    assert ended(home, "sh", "-c", text) == ours


@pytest.mark.parametrize("code", [0, 3], ids=["runner", "job.sh"])
def test_a_run_before_the_first_sample_has_its_memory(home: Path, code: int) -> None:
    """Also if job.sh records its end: of the largest process, whichever of its children that is."""
    allocate = "python3 -I -S -c 'import sys; data = bytearray(int(sys.argv[1]) << 20)'"
    call("run", "--wait", "sh", "-c", f"{allocate} 60; {allocate} 30; exit {code}")
    ending = json.loads((last(home) / "exit.json").read_text())
    usage = ending["usage"]
    assert ending["code"] == code and 60 <= usage["memory_mb"] <= 85, usage
    assert usage.get("largest_process") or usage["seconds"] >= 1, usage
    assert usage["cpu_seconds"] > 0 and usage["seconds"] > 0
    assert usage_samples.samples((last(home) / "usage").read_bytes())[-1].peak == usage["memory_mb"]


def gone(pid: int) -> bool:
    return born(pid) is None


def test_killed_at_any_moment_it_ran_at_most_once(home: Path) -> None:
    backend, ledger = LocalBackend(LocalHost(), home / "data" / "slots"), home / "ledger"
    words = ("sh", "-c", f"echo $YURT_RUN_ID >> '{ledger}'")
    plans = [planning(LOCAL, Request(words=words, snapshot=False)).plan for _each in range(16)]
    submit(backend, plans[0])
    follow(backend, plans[0])
    states = {}
    for step, plan in enumerate(plans[1:]):
        pid = int(submit(backend, plan).job)
        time.sleep(step * 0.004)
        if born(pid) is not None:
            os.kill(pid, signal.SIGKILL)
        eventually(functools.partial(gone, pid))
        if not (Path(plan.run.folder) / "winner").exists():
            submit(backend, plan)  # as the next yurt command does
        states[plan.run.id] = follow(backend, plan).state
    ran = ledger.read_text().split()
    assert len(ran) == len(set(ran)), "a run ran twice"
    assert set(states.values()) <= {"completed", "lost"}
    assert {run for run, state in states.items() if state == "completed"} <= set(ran)


def test_signals_reach_the_command(home: Path) -> None:
    text = 'trap "echo one" USR1; trap "echo end; exit 5" TERM; echo ready; while :; do sleep 0.05; done'
    assert call("run", "sh", "-c", text).code == 0
    log = last(home) / "out.log"
    eventually(lambda: "ready" in log.read_text())
    pid = int((last(home) / "winner").read_text().rpartition(".")[2])
    os.kill(pid, signal.SIGUSR1)
    eventually(lambda: "one" in log.read_text())
    os.kill(pid, signal.SIGTERM)
    eventually((last(home) / "exit.json").exists)
    ending = json.loads((last(home) / "exit.json").read_text())
    assert (ending["code"], ending["cause"]) == (5, "stopped") and "end" in log.read_text()
    assert (last(home) / "stopped.1").read_text() == "stopped\n"


def test_a_full_disk_at_its_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be linked for a moment: the text is written when there is room."""
    from yurt.backends.local import gate

    slept: list[float] = []
    link = os.link

    def full(*paths: Any) -> None:
        if len(slept) < 3:
            raise OSError(28, "No space left on device")
        link(*paths)

    monkeypatch.setattr(os, "link", full)
    monkeypatch.setattr(time, "sleep", slept.append)
    assert gate.write_once(str(home / "text"), "one", "me") == "one" and slept == [1, 1, 1]
    assert gate.write_once(str(home / "text"), "two", "you") == "one"
    slept.clear()
    assert gate.write_once(str(home / "other"), "one", "me", patience=2) == ""
    assert sorted(file.name for file in home.iterdir() if file.is_file()) == ["text"]


def test_an_empty_text_and_a_pipe_are_no_text(home: Path) -> None:
    from yurt.backends.local import gate

    (home / "empty").write_text("")
    os.mkfifo(home / "pipe")
    (home / "folder.d").mkdir()
    (home / "folder.d" / "text").write_text("one\n")
    assert [gate.read_written(str(home / name)) for name in ("empty", "pipe", "none", "folder")] == ["", "", "", "one"]


def modes(home: Path) -> Iterator[tuple[str, Path]]:
    """Yield folders of yurt that differ in who could have written to them."""
    for name, base, inside in [
        ("private", 0o700, 0o700),
        ("readable", 0o755, 0o755),
        ("group", 0o770, 0o700),
        ("all", 0o707, 0o700),
        ("inside", 0o711, 0o722),
    ]:
        folder = home / name / "yurt"
        (folder / "projects").mkdir(parents=True)
        (folder / "projects").chmod(inside)
        folder.chmod(base)
        yield name, folder
    open_to_all = home / "open"
    (open_to_all / "yurt").mkdir(parents=True, mode=0o700)
    open_to_all.chmod(0o777)
    yield "open", open_to_all / "yurt"
    sticky = home / "sticky"
    (sticky / "yurt").mkdir(parents=True, mode=0o700)
    sticky.chmod(0o1777)
    yield "sticky", sticky / "yurt"
    (home / "linked").symlink_to(home / "private" / "yurt")
    yield "linked", home / "linked"


def test_what_is_surely_own_is_own(home: Path) -> None:
    text = scripts.text("own.sh", "job") + 'own "$@" || { echo "$unsafe" >&2; exit 1; }'
    sure = []
    for name, base in modes(home):
        paths = [str(base), f"{base}/projects", f"{base}/none"]
        words = ["sh", "-c", text, "sh", str(base.parent), *paths]
        safe = subprocess.run(words, capture_output=True, check=False).returncode == 0
        found = own.surely_own(paths)
        assert safe or not found, name
        sure += [name] if found else []
    assert sure == ["private", "readable", "sticky"]
    assert not own.surely_own([str(home / "none")])


def test_names_of_its_facts() -> None:
    text = runner.written("/a b", copy=True, writable=False, subfolder="x", grace=10, limit=0, paths=["/a", "/a/b"])
    facts = runner.Facts(text)
    assert (facts.code, facts.copy, facts.writable, facts.paths) == ("/a b", True, False, ["/a", "/a/b"])
    assert runner.written("/a\nb", copy=True, writable=False, subfolder="", grace=1, limit=0, paths=[]) == ""


def test_code_that_is_not_small_is_left_to_job_sh(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "run").mkdir()
    (home / "code").mkdir()
    monkeypatch.chdir(home / "run")
    for line in ("201 10", "10 10000001", "", "x"):
        (home / ".code.folders").write_text(f"{line}\n")
        work_folder.make(str(home / "code"), "")
        assert not (home / "run" / "work").exists(), line
    (home / ".code.folders").write_text("1 10\n")
    work_folder.make(str(home / "code"), "")
    assert sorted(file.name for file in Path().iterdir()) == ["checkpoints", "copied", "outputs", "work"]


def test_job_sh_has_an_entry_for_its_end() -> None:
    assert "ended) shift && end_start" in script.below_the_head()
