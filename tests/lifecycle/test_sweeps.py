"""Sweeps on this machine and on both clusters: every task once, with its own parameters, in few arrays and files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.calls import YURT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.store import Store
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab

TASK = """\
import json, os, sys
seen = {"argv": sys.argv[1:], "params": json.load(open(os.environ["YURT_PARAMS"])), "odd": os.environ["YURT_PARAM_ODD"],
        "id": os.environ["YURT_RUN_ID"], "index": os.environ["YURT_TASK_INDEX"], "sweep": os.environ["YURT_SWEEP_ID"]}
print(json.dumps(seen))
import yurt
yurt.log(step=1, loss=1 / (1 + seen["params"]["n"]))
with open(os.environ["LEDGER"], "a") as file:
    file.write(seen["id"] + "\\n")
sys.exit(3 if seen["params"]["n"] == 2 else 0)
"""

ODD = ["a b", "it's $(me)", "", "--x"]


@pytest.fixture
def laptop(laptop: Laptop) -> Laptop:
    (laptop.project / "task.py").write_text(TASK)
    return laptop


def ledger(context: str, tmp_path: Path) -> str:
    return str(tmp_path / "ledger") if context == "local" else f"/lustre/scratch/alice/ledger-{time.time()}"


def lines(lab: Lab, context: str, file: str) -> list[str]:
    if context == "local":
        return Path(file).read_text().split() if Path(file).exists() else []
    text = Ssh(lab)(context, f"sed 's/^/@/' {file} 2> /dev/null || true")
    return [line[1:] for line in text.splitlines() if line.startswith("@")]


def tally(laptop: Laptop, sweep: str) -> dict[str, int]:
    laptop("ps", "-q")
    with Store(str(laptop.home / "data" / "yurt.db")) as index:
        entry = index.get(sweep)
    assert entry is not None
    return entry.status.task_states


def all_ended(laptop: Laptop, *sweeps: str) -> list[dict[str, int]]:
    """Wait for sweeps and return the number of tasks by state."""
    done = laptop("wait", *sweeps, "--timeout", "240", "--json")
    assert done.code in (0, 1), done
    return [entry["status"]["task_states"] for entry in done.json["data"]]


def ended(laptop: Laptop, sweep: str) -> dict[str, int]:
    return all_ended(laptop, sweep)[0]


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("beta")
def test_every_task_once_with_its_own_parameters(laptop: Laptop, lab: Lab, context: str, tmp_path: Path) -> None:
    file = ledger(context, tmp_path)
    values = ",".join(f'"{value}"' for value in ODD)
    grid = ["--grid", "n=1..3", "--grid", f"odd=[{values}]", "--param", "fixed=0.5"]
    run = laptop.run(
        context, "--cpus", "1", "--mem", "50", "--var", f"LEDGER={file}", *grid, "task.py", "--", "--first", "1"
    )
    sweep = run["run"]["id"]
    assert run["run"]["tasks"] == 12 and sweep.startswith("s")
    assert ended(laptop, sweep) == {"completed": 8, "failed": 4}
    assert sorted(lines(lab, context, file)) == sorted(f"{sweep}.{number}" for number in range(12))
    for number in (0, 5, 11):
        shown = laptop("logs", f"{sweep}.{number}").out
        seen: dict[str, Any] = json.loads(shown)
        n, odd = number // 4 + 1, ODD[number % 4]
        assert seen["params"] == {"first": 1, "fixed": 0.5, "n": n, "odd": odd}
        assert seen["odd"] == odd and seen["id"] == f"{sweep}.{number}"
        assert (seen["index"], seen["sweep"]) == (str(number), sweep)
        assert seen["argv"] == ["--first", "1", "--n", str(n), "--odd", odd, "--fixed", "0.5"]


def test_in_few_arrays_and_few_files(laptop: Laptop, lab: Lab) -> None:
    """250 tasks on beta, whose arrays have at most 101: three arrays, one request, and fewer than ten files each."""
    run = laptop.run("beta", "--hold", "--cpus", "1", "--mem", "50", "--grid", "n=1..250", "true")
    folder, sweep = run["run"]["folder"], run["run"]["id"]
    files = Ssh(lab)("beta", f"find {folder} -type f | sed 's/^/@/'")
    assert len(re.findall("^@", files, re.MULTILINE)) < 10
    names = Ssh(lab)("beta", f"squeue -h -o '@%j %F' | grep {sweep} | sort -u")
    assert len(re.findall("^@", names, re.MULTILINE)) == 3
    done = laptop("cancel", sweep, "--json")
    assert done.json["data"][0]["state"] == "cancelled"
    assert tally(laptop, sweep) == {"cancelled": 250}
    eventually(lambda: sweep not in Ssh(lab)("beta", "squeue -h -o %j"))


def test_tasks_above_the_job_limit_are_submitted_later(laptop: Laptop, lab: Lab, tmp_path: Path) -> None:
    file = ledger("alpha", tmp_path)
    command = f"echo $YURT_RUN_ID >> {file}"
    run = laptop.run("alpha", "--qos", "few", "--cpus", "1", "--mem", "50", "--grid", "n=1..13", "sh", "-c", command)
    assert ended(laptop, run["run"]["id"]) == {"completed": 13}
    assert sorted(Counter(lines(lab, "alpha", file)).values()) == [1] * 13


def test_a_full_queue_does_not_block_another(laptop: Laptop) -> None:
    small = ["--cpus", "1", "--mem", "50"]
    full = laptop.run("alpha", "--qos", "few", *small, "--grid", "n=1..9", "sh", "-c", "sleep 120")["run"]["id"]
    behind = laptop.run("alpha", "--qos", "few", *small, "true")
    assert behind["status"]["state"] == "waiting"
    other = laptop("--context", "alpha", "run", *small, "--wait", "true")
    assert other.code == 0 and "waits" not in other.err, other
    assert laptop("show", behind["run"]["id"], "--json").json["data"]["status"]["state"] == "waiting"
    laptop("cancel", full)
    assert laptop("wait", behind["run"]["id"]).code == 0


@pytest.mark.parametrize("context", ["local", "alpha", "beta"])
@pytest.mark.slow("alpha")
def test_clients_killed_and_repeated(laptop: Laptop, lab: Lab, context: str, tmp_path: Path) -> None:
    """If the client is killed while it submits, each task starts once; the rest is submitted later."""
    file = ledger(context, tmp_path)
    words = ["--context", context, "run", "--cpus", "1", "--mem", "50", "--grid", "n=1..5", "sh", "-c"]
    for wait in (0.15, 0.25, 0.35, 0.45, 0.6):
        process = subprocess.Popen(
            [YURT, *words, f"echo $YURT_RUN_ID >> {file}"],
            cwd=laptop.project,
            env={**os.environ, **laptop.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(wait)
        process.kill()
        process.wait()
    rows = [row for row in laptop("ps", "--json").json["data"] if row["context"] == context and row["id"][0] == "s"]
    mine = [row["id"] for row in rows if f">> {file}" in " ".join(row["command"])]
    assert not mine or all_ended(laptop, *mine) == [{"completed": 5}] * len(mine)
    expected = sorted(f"{sweep}.{number}" for sweep in mine for number in range(5))
    assert sorted(lines(lab, context, file)) == expected


def test_only_failed_tasks_are_retried(laptop: Laptop, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f'[ -e {flag} ] || [ "$2" != 2 ] || exit 4'
    sweep = laptop.run("local", "--grid", "n=1..4", "sh", "-c", command, "sh")["run"]["id"]
    assert ended(laptop, sweep) == {"completed": 3, "failed": 1}
    flag.touch()
    done = laptop("retry", "--failed", sweep, "--json")
    assert done.code == 0, done
    again = done.json["data"][0]["run"]
    assert (again["tasks"], again["retry_of"]) == (1, sweep)
    assert ended(laptop, again["id"]) == {"completed": 1}
    assert laptop("logs", f"{again['id']}.0").code == 0


@pytest.mark.slow
def test_retried_tasks_are_not_retried_again(laptop: Laptop) -> None:
    sweep = laptop.run("local", "--grid", "n=1..5", "sh", "-c", '[ "$2" = 3 ] || exit 4', "sh")["run"]["id"]
    assert ended(laptop, sweep) == {"completed": 1, "failed": 4}

    def retried(*words: str) -> list[dict[str, object]]:
        done = laptop("retry", *words, "--json")
        assert done.code == 0, done
        return [each["run"] for each in done.json["data"]]

    (one,) = retried(f"{sweep}.0")
    (two,) = retried(sweep, "--filter", "n=2")
    (rest,) = retried("--failed", sweep)
    assert (one["retry_of"], two["retried"], rest["retried"], rest["tasks"]) == (f"{sweep}.0", "1", "3-4", 2)
    assert laptop("retry", "--failed", sweep).out == "no failed runs to retry\n"
    assert ended(laptop, str(rest["id"])) == {"failed": 2}
    (again,) = retried("--failed", str(rest["id"]))
    assert (again["tasks"], again["retried"]) == (2, "0-1")
    assert retried(sweep)[0]["tasks"] == 5, "tasks named without --failed are retried"


def test_a_signal_that_only_the_command_got(laptop: Laptop) -> None:
    """Slurm signals processes one by one: the command may exit before job.sh receives the signal."""
    sweeps = []
    for place in ("$YURT_RUN_DIR/cancel", "$YURT_RUN_DIR/../../cancel", "/dev/null"):
        command = f': > "{place}"; kill -TERM $$; sleep 5'
        sweeps.append(laptop.run("local", "--grid", "n=1", "sh", "-c", command)["run"]["id"])
    assert all_ended(laptop, *sweeps) == [{"cancelled": 1}, {"cancelled": 1}, {"failed": 1}]


def test_secrets_and_dependencies_apply_to_every_task(
    laptop: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "it's secret")
    go = tmp_path / "go"
    command = f'[ "$TOKEN" = "it\'s secret" ] && until [ -e {go} ]; do sleep 0.1; done'
    first = laptop.run("local", "--secret", "TOKEN", "--grid", "n=1..3", "sh", "-c", command)["run"]["id"]
    second = laptop.run("local", "--after", first, "--grid", "n=1..2", "true")
    assert second["status"]["state"] == "waiting"
    go.touch()
    assert all_ended(laptop, second["run"]["id"], first) == [{"completed": 2}, {"completed": 3}]
    assert not list((laptop.home / "data" / "projects").glob("*/sweeps/*/secret.*"))


def test_submitted_tasks_are_refreshed_while_the_queue_is_full(laptop: Laptop, lab: Lab) -> None:
    go = f"/lustre/scratch/alice/go-{time.time()}"
    command = f'if [ "$2" -lt 3 ]; then until [ -e {go} ]; do sleep 0.1; done; else sleep 120; fi'
    options = ["--qos", "few", "--cpus", "1", "--mem", "50", "--max-parallel", "4", "--grid", "n=1..9"]
    sweep = laptop.run("alpha", *options, "sh", "-c", command, "sh")["run"]["id"]

    def full() -> bool:
        """The queue was full, and the submitted tasks were refreshed."""
        warnings = laptop("ps", "--json").json["warnings"]
        return any(line.startswith("runs on alpha are saved and not yet submitted") for line in warnings)

    try:
        eventually(full, seconds=100)
        Ssh(lab)("alpha", f"touch {go}")
        eventually(lambda: tally(laptop, sweep).get("completed", 0) >= 2, seconds=100)
    finally:
        laptop("cancel", sweep)
    assert set(ended(laptop, sweep)) == {"completed", "cancelled"}
