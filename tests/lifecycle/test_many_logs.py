"""Logs of many tasks: each line once, with its task as a prefix, over one connection; also if that is lost."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.calls import YURT
from tests.laptop import Laptop
from tests.lifecycle.test_sweeps import tally
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

SMALL = ["--cpus", "1", "--mem", "50"]
TALK = "for i in 1 2 3; do echo $YURT_PARAM_N says $i; sleep 0.2; done; echo bad >&2; printf 'no end'"


def spoken(count: int) -> list[str]:
    return sorted(
        f"{n - 1} | {line}" for n in range(1, count + 1) for line in [f"{n} says {i}" for i in (1, 2, 3)] + ["no end"]
    )


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("beta")
def test_a_sweep_is_followed_to_its_end(laptop: Laptop, context: str) -> None:
    done = laptop("run", "--context", context, "-f", *SMALL, "--grid", "n=1..5", "sh", "-c", TALK)
    assert done.code == 0, done
    head, *lines = done.out.splitlines()
    sweep = head.split()[0]
    assert sorted(lines) == spoken(5)
    for number in range(5):
        own = [line for line in lines if line.startswith(f"{number} | ")]
        assert own == [f"{number} | {line}" for line in [*(f"{number + 1} says {i}" for i in (1, 2, 3)), "no end"]]
    assert done.err.count("| bad") == 5
    assert sorted(laptop("logs", sweep, "--out").out.splitlines()) == spoken(5)
    assert sorted(laptop("logs", "-f", sweep, "--out").out.splitlines()) == spoken(5)
    some = laptop("logs", sweep, "--filter", "n=2", "--filter", "n=4", "--tail", "2", "--out")
    assert some.out == "1 | 2 says 3\n1 | no end\n3 | 4 says 3\n3 | no end\n"
    assert laptop("logs", f"{sweep}.3", "--out").out == "4 says 1\n4 says 2\n4 says 3\nno end"
    lines = laptop("logs", sweep, "--json", "--filter", "n=5").out.splitlines()
    assert len(lines) == 5 and f'"run":"{sweep}.4"' in lines[0].replace(" ", "")


def test_lost_connections_neither_drop_nor_repeat_lines(laptop: Laptop, lab: Lab) -> None:
    command = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo line $i; sleep 0.05; done"
    words = ["--max-parallel", "3", "--grid", "n=1..4", "sh", "-c", command]
    sweep = laptop.run("alpha", *SMALL, *words)["run"]["id"]
    environment = {**os.environ, **laptop.environment}
    with subprocess.Popen(
        [YURT, "logs", "-f", sweep], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(240, process.kill)
        late.start()
        out = ""
        try:
            for number, line in enumerate(process.stdout):
                out += line
                if number in (5, 125):  # in the first three tasks, and in the last one
                    lab.faults.cut("alpha")
                    time.sleep(0.5)  # while tasks are still writing
                    lab.faults.heal("alpha")
        finally:
            late.cancel()
            lab.faults.heal("alpha")
            process.kill()
    for number in range(4):
        own = re.findall(rf"^{number} \| (line \d+)$", out, re.MULTILINE)
        assert own == [f"line {i}" for i in range(1, 41)]


def test_many_tasks_take_one_connection_and_a_few_lines_each(laptop: Laptop, lab: Lab) -> None:
    sweep = laptop.run("local", "--grid", "n=1..25", "sh", "-c", "seq 1 30")["run"]["id"]
    assert laptop("wait", sweep, "--timeout", "240").code == 0
    done = laptop("logs", sweep)
    assert done.err == "yurt: showing the last 10 lines of each of 25 tasks; --tail N shows more\n"
    assert done.out == "".join(f"{task:>2} | {line}\n" for task in range(25) for line in range(21, 31))
    assert laptop("logs", sweep, "--tail", "30").out.count("\n") == 25 * 30
    assert sorted(laptop("logs", "-f", sweep).out.splitlines()) == sorted(done.out.splitlines())


def test_local_copies_are_shown_if_folders_are_gone(laptop: Laptop) -> None:
    sweep = laptop.run("local", "--grid", "n=1..3", "sh", "-c", "echo kept $YURT_PARAM_N")["run"]["id"]
    assert laptop("wait", sweep).code == 0
    with Store(str(laptop.home / "data" / "yurt.db")) as index:
        entry = index.get(sweep)
        assert entry is not None
        eventually(lambda: laptop("ps", "-q").code == 0 and all(index.is_kept(f"{sweep}.{n}") for n in range(3)))
    Path(entry.run.folder).rename(f"{entry.run.folder}.away")
    gone = laptop("logs", sweep)
    assert gone.out == "".join(f"{n} | kept {n + 1}\n" for n in range(3))
    assert "the run folders on local are gone; showing the local copy for 3 of 3 runs" in gone.err


def test_the_number_of_followed_tasks_is_limited(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from yurt.lifecycle.files import many_logs

    for name, value in laptop.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(many_logs, "RUNNING", 1)
    monkeypatch.setattr(many_logs, "LATER", 3)
    go = tmp_path / "go"
    command = f"echo a; until [ -e {go} ]; do sleep 0.1; done; echo b"
    sweep = laptop.run("local", "--grid", "n=1,2", "sh", "-c", command)["run"]["id"]
    eventually(lambda: tally(laptop, sweep).get("running", 0) == 2)
    heard: list[tuple[str, bytes]] = []
    words: list[str] = []

    def hear(run: str, _which: str, part: bytes) -> None:
        heard.append((run, part))
        go.touch()

    with Store(str(laptop.home / "data" / "yurt.db")) as index:
        many_logs.follow_many(index, "local", [sweep], hear, on_word=words.append)
    assert [run for run, _part in heard] == sorted(run for run, _part in heard), "one after the other"
    assert {run: b"".join(part for whose, part in heard if whose == run) for run, _part in heard} == {
        f"{sweep}.0": b"a\nb\n",
        f"{sweep}.1": b"a\nb\n",
    }
    assert words[0].startswith("following at most 1 running tasks at a time; 1 more")
