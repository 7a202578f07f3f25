"""poll.sh: which tasks of a queue it omits, and whose folders it reads.

The tests write the queue, since they cannot control the contents of a real one.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from yurt.backends.job import script
from yurt.backends.slurm import queries
from yurt.model import tasks
from yurt.model.run import RunRef
from yurt.model.state import WAITS_FOR_SYNC

POLL = queries.poll_script()
SWEEP = "s1nfkaf7-c1w10"
SHELLS = ["dash", "bash", "bash --posix"]
AWKS = ["mawk", "gawk"]


HEADER = "|COMMENT   |JOBID|STATE|REASON|START_TIME|NODELIST|NAME\n"


def poll(home: Path, rows: Sequence[str], refs: Sequence[RunRef], *, shell: str = "dash", awk: str = "mawk") -> str:
    """Return what poll.sh prints for rows of squeue, which may begin with ten characters of a comment: |home_sync |."""
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    (home / "queue").write_text(HEADER + "".join(f"{row if row[0] == '|' else f'|(null)    |{row}'}\n" for row in rows))
    for name, does in {
        "squeue": f"cat {home}/queue",
        "sacct": f'echo "$@" >> {home}/asked',
        "awk": f'exec {awk} "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        [*shell.split(), "-c", f"{script.gate()}\nmain() {{\n{POLL}\n}}\nmain yes 2"],
        input=queries.poll_input(refs),
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout


def sweep(home: Path, numbers: str, offsets: str = "0") -> RunRef:
    (home / "sweeps" / SWEEP).mkdir(parents=True, exist_ok=True)
    return RunRef(SWEEP, str(home / "sweeps" / SWEEP), 0.0, open=numbers, offsets=offsets)


def end(home: Path, number: int, *, logged: str = "") -> None:
    folder = home / "sweeps" / SWEEP / "tasks" / str(number)
    folder.mkdir(parents=True)
    (folder / "winner").write_text(f"abcd.9_{number}\n")
    (folder / "gen.1").write_text("begun\n")
    (folder / "exit.json").write_text('{"code":0}\n')
    if logged:
        (folder / "metrics.jsonl").write_text(logged)


def folders(answer: str) -> dict[int, str]:
    """Return the lines of the section `folders`, by task."""
    lines = answer.partition("= folders\n")[2].partition("= ")[0].splitlines()
    return {int(line.split("|")[0].rpartition(".")[2]): line for line in lines if line[0] != "@"}


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("shell", SHELLS)
def test_only_folders_of_tasks_outside_the_queue_are_read(tmp_path: Path, shell: str, awk: str) -> None:
    end(tmp_path, 3, logged='{"loss":1}\n{"loss":0.5}\n')
    end(tmp_path, 150, logged='{"loss":2}')
    end(tmp_path, 6)
    rows = [
        f"9_[10-99%4]|PENDING|Priority|||yurt-{SWEEP}+0",
        f"12_[0-48:4]|PENDING|Priority|||yurt-{SWEEP}+100",
        f"9_5|RUNNING|None|2026-11-15T06:38:09|n1|yurt-{SWEEP}+0",
        f"9_6|RUNNING|None|2026-11-15T06:38:09|n1|yurt-{SWEEP}+0",
        f"9_7|CONFIGURING|None|N/A|n1|yurt-{SWEEP}+0",
        f"9_2|COMPLETED|None|2026-11-15T06:38:09|n1|yurt-{SWEEP}+0",
        f"9_3|COMPLETED|None|2026-11-15T06:38:09|n1|yurt-{SWEEP}+0",
    ]
    answer = poll(tmp_path, rows, [sweep(tmp_path, "3-104,150", "0,100")], shell=shell, awk=awk)
    absent = folders(answer)
    # 5 runs and has no exit.json; 6 runs according to the queue, but has finished; 7 starts; 8, 9, 101-103 are nowhere.
    assert sorted(absent) == [3, 4, 6, 8, 9, 101, 102, 103, 150]
    assert absent[3] == f'{SWEEP}.3|abcd.9_3|1|begun|||{{"code":0}}' and absent[4] == f"{SWEEP}.4||0||||"
    assert f'@{SWEEP}.3|{{"loss":0.5}}\n' in answer and f'@{SWEEP}.150|{{"loss":2}}\n' in answer
    queue = answer.partition("= queue\n")[2].partition("= folders")[0]
    assert "9_3|COMPLETED" in queue and "9_2|" not in queue, "2 is already recorded as finished"
    assert f"--name=yurt-{SWEEP}+0,yurt-{SWEEP}+100" in (tmp_path / "asked").read_text()


def test_a_task_that_slurm_killed_for_its_memory(tmp_path: Path) -> None:
    """Slurm says it in a file of the sweep, and nothing lists the job: the task ended when that file was written."""
    ref = sweep(tmp_path, "0-1")
    folder = Path(ref.folder) / "tasks" / "1"
    folder.mkdir(parents=True)
    (folder / "winner").write_text("abcd.9_1\n")
    (folder / "gen.1").write_text("abcd.9_1.0.n1.17.5.0\n")
    (Path(ref.folder) / "slurm.9_1").write_text(
        "slurmstepd: error: Job 9 exceeded memory limit (63 > 40 MB), being killed\n"
    )
    os.utime(Path(ref.folder) / "slurm.9_1", (1_700_000_000, 1_700_000_000))
    answer = poll(tmp_path, [], [ref])
    assert folders(answer)[1].split("|")[4] == "memory 1700000000"
    seen = queries.read_poll(answer, [ref])[f"{SWEEP}.1"]
    assert (seen.record, seen.native, seen.ended) == ("out_of_memory", "OUT_OF_MEMORY", 1_700_000_000)


@pytest.mark.parametrize("awk", AWKS)
def test_random_ranges(tmp_path: Path, awk: str) -> None:
    for seed in range(25):
        chance = random.Random(seed)
        every = range(80)
        there = {number for number in every if chance.random() < 0.7}
        waits = [{number for number in every if chance.random() < share} for share in (0.6, 0.1)]
        runs = {number for number in every if chance.random() < 0.1}
        rows = [f"{job}_[{tasks.ranges(each)}]|PENDING|x|||yurt-{SWEEP}+0" for job, each in enumerate(waits) if each]
        rows += [f"9_{number}|RUNNING|None||n1|yurt-{SWEEP}+0" for number in runs]
        chance.shuffle(rows)
        answer = poll(tmp_path, rows, [sweep(tmp_path, tasks.ranges(there))], awk=awk)
        assert set(folders(answer)) == there - waits[0] - waits[1] - runs, f"seed {seed}"


def test_plain_runs_beside_a_sweep(tmp_path: Path) -> None:
    names = ("1nfkaf7-aaaaa", "1nfkaf7-bbbbb", "1nfkaf7-ccccc")
    refs = [RunRef(name, str(tmp_path / "runs" / name), 0.0) for name in names]
    for name in names:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "metrics.jsonl").write_text('{"loss":1}\n')
    (tmp_path / "runs" / names[1] / "exit.json").write_text('{"code":0}\n')
    end(tmp_path, 0, logged='{"loss":1}\n')
    rows = [f"1|PENDING|x|||yurt-{names[0]}", f"2|RUNNING|None||n1|yurt-{names[1]}"]
    answer = poll(tmp_path, rows, [*refs, sweep(tmp_path, "0")])
    found = answer.partition("= folders\n")[2].partition("= controller")[0].splitlines()
    assert [line.partition("|")[0] for line in found] == [names[1], names[2], f"{SWEEP}.0", f"@{SWEEP}.0"]


@pytest.mark.parametrize("awk", AWKS)
def test_of_runs_whose_exit_code_is_known_only_jobs_are_reported(tmp_path: Path, awk: str) -> None:
    refs = []
    for name in ("gone", "left", "open"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "exit.json").write_text('{"code":0}\n')
        refs.append(RunRef(name, str(tmp_path / "runs" / name), 0.0, ended=name != "open"))
    said = poll(tmp_path, ["9|RUNNING|None|2026-01-01T00:00:00|n1|yurt-left"], refs, awk=awk)
    _queue, _, folders = said.partition("= folders\n")
    assert [line.partition("|")[0] for line in folders.splitlines()] == ["open"]
    seen = queries.read_poll(said, refs)
    assert {name: each.live for name, each in seen.items()} == {"gone": None, "left": "running", "open": None}


def test_many_pending_tasks_are_one_row(tmp_path: Path) -> None:
    rows = [f"9_[0-99999999]|PENDING|Priority|||yurt-{SWEEP}+0"]
    answer = poll(
        tmp_path, rows, [sweep(tmp_path, "0-99999999")]
    )  # a hundred million tasks one by one would take minutes
    assert answer == f"= queue\n{rows[0]}\n"
    assert queries.read_poll(answer, [sweep(tmp_path, "0-99999999")]) == {}


@pytest.mark.parametrize("awk", AWKS)
def test_jobs_that_wait_for_a_home_sync(tmp_path: Path, awk: str) -> None:
    """Only the job that is held by its user with this word in its comment; a comment may contain squeue's separator."""
    rows = [
        "|home_sync |1|PENDING|JobHeldUser|N/A||yurt-a",
        "|home_synce|2|PENDING|JobHeldUser|N/A||yurt-b",
        "|home_sync |3|PENDING|JobHeldAdmin|N/A||yurt-c",
        "|home_sync |4|RUNNING|None|N/A|n1|yurt-d",
        "|= 0|x|y|z |5|PENDING|JobHeldUser|N/A||yurt-e",
        "|race_wait |6|PENDING|JobHeldUser|N/A||yurt-f",
    ]
    refs = [RunRef(run, f"{tmp_path}/{run}", 0.0) for run in "abcdef"]
    answer = poll(tmp_path, rows, refs, awk=awk)
    found = queries.read_poll(answer, refs)
    assert {run: each.reason for run, each in found.items() if each.live == "held"} == {
        "a": WAITS_FOR_SYNC,
        "b": "held; release it with `yurt release`",
        "c": "waiting for an administrator to release it",
        "e": "held; release it with `yurt release`",
        "f": "no yurt command told its job who was first; run `yurt agent start`, then `yurt release`",
    }
    assert found["d"].live == "running"
