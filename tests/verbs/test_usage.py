"""What runs used: in `show` and `ps`, and as advice; of local runs, and of jobs on both clusters of the lab."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.lab import Lab
from yurt.model import ids
from yurt.model.run import Resources, Run, Status
from yurt.model.usage import Usage
from yurt.store import Store
from yurt.testing.waiting import eventually

BURN = """\
import os, sys, time
data = bytearray(int(sys.argv[1]) << 20)
data[::4096] = bytes(len(data[::4096]))
data[::4096] = b"1" * len(data[::4096])
while time.process_time() < float(sys.argv[2]): pass
print(f"cpu {sum(os.times()[:2])}", flush=True)
"""
"""Uses so many MB and so many seconds of CPU time."""


def burn(user: User) -> None:
    (user.project / "burn.py").write_text(BURN)


def used(user: User, run: str) -> dict[str, Any]:
    shown = user.quick("show", run, "--json").json["data"]
    usage: dict[str, Any] = shown["usage"] or {}
    return {**usage, "folder": shown["run"]["folder"]}


def processes_of(folder: str) -> list[str]:
    """Return the processes of yurt in a run folder."""
    found = subprocess.run(["pgrep", "-f", f"{folder}/job.sh"], capture_output=True, text=True, check=False)
    return found.stdout.split()


def test_local_run(user: User) -> None:
    burn(user)
    done = user.quick("run", "-q", "--cpus", "2", "--mem", "2G", "--time", "1h", "--follow", "burn.py", "300", "2")
    assert done.code == 0, done
    found = used(user, "-")
    assert 290 <= found["memory_mb"] <= 330 and 1.9 <= found["cpu_seconds"] <= 2.6 + found["seconds"] * 0.2, found
    text = user.quick("show", "-").out
    assert " of 2 CPUs (" in text and f"{found['memory_mb']}M of 2G memory" in text and "of 1 h\n" in text
    assert f" {found['memory_mb']}M " in user.quick("ps", "--wide").out
    curves = user.quick("show", "-", "--usage")
    assert "CPUs over seconds" in curves.out and "memory in MB" in curves.out and "GPU" not in curves.out, curves
    assert max(user.quick("show", "-", "--usage", "--json").json["data"]["usage_curve"]["memory_mb"]) >= 290
    assert not processes_of(found["folder"])


def test_short_run(user: User) -> None:
    burn(user)
    assert user.quick("run", "-q", "--follow", "burn.py", "200", "0.3").code == 0
    found = used(user, "-")
    assert 190 <= found["memory_mb"] <= 230 and 0.3 <= found["cpu_seconds"] <= 1.5, found


def test_running_and_cancelled_run(user: User) -> None:
    burn(user)
    run = user.quick("run", "-q", "burn.py", "100", "600").out.strip()
    eventually(lambda: (used(user, run).get("memory_mb") or 0) >= 95)
    assert user.quick("cancel", run).code == 0
    assert user.quick("wait", run, "--timeout", "60").code == 1
    found = used(user, run)
    assert 95 <= found["memory_mb"] <= 125 and found["cpu_seconds"] > 0
    assert not processes_of(found["folder"])


def test_killed_sampler(user: User) -> None:
    """The run goes on without it, and its CPU time is still known."""
    burn(user)
    run = user.quick("run", "-q", "burn.py", "10", "2").out.strip()
    folder = used_folder(user, run)
    eventually((folder / "usage").exists)
    for each in processes_of(str(folder)):
        if b"sample" in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0"):
            os.kill(int(each), 9)
    assert user.quick("wait", run).code == 0
    assert used(user, run)["cpu_seconds"] >= 1.9


def used_folder(user: User, run: str) -> Path:
    return Path(user.quick("show", run, "--json").json["data"]["run"]["folder"])


def test_sweep_tasks(user: User) -> None:
    burn(user)
    done = user.quick("run", "-q", "--grid", "mb=20,60,150", "--follow", "burn.py", "{mb}", "0.8")
    assert done.code == 0, done
    shown = user.quick("show", "-", "--json").json["data"]
    memory = [row["usage"]["memory_mb"] for row in shown["rows"]]
    assert all(want <= have <= want + 25 for want, have in zip((20, 60, 150), memory, strict=True)), memory
    assert shown["usage"]["memory_mb"] == memory[1] and shown["usage"]["memory_mb_most"] == memory[2]
    assert "median of 3 tasks: " in user.quick("show", "-").out
    assert not list(Path(shown["run"]["folder"]).glob("tasks/*/usage*"))  # what stays is in exit.json
    assert user.quick("show", "-", "--usage").code == 2
    assert user.quick("show", "@last-sweep.0", "--usage").code == 0


def earlier(user: User, count: int, **fields: Any) -> None:
    """Record completed runs of `train.py` that asked for 16G and used 2.4G."""
    with Store(f"{user.home}/data/yurt.db") as store:
        for number in range(count):
            made = time.time() - 1000 - number
            run = Run(
                id=ids.make(made, number * 7919),
                context="local",
                context_type="local",
                project=fields.get("project", ""),
                source=str(user.project),
                created=made,
                command=["train.py"],
                folder="/nowhere",
                resources=Resources(memory_mb=16384),
            )
            usage = Usage(seconds=100.0, cpu_seconds=90.0, memory_mb=2400)
            store.add(run, Status(state=fields.get("state", "completed"), seconds=100.0, usage=usage))


def test_advice(user: User) -> None:
    first = user.quick("run", "--json", "--mem", "16G", "train.py").json
    assert first["warnings"] == []
    earlier(user, 41, project=first["data"]["run"]["project"])
    again = user.quick("run", "--mem", "16G", "train.py")
    assert "ask for 3G instead of 16G with `--mem 3G`: 41 similar runs never used more than 2.3G" in again.err, again
    assert user.quick("run", "--json", "--mem", "3G", "train.py").json["warnings"] == []
    (user.project / "yurt.yaml").write_text("advice: false\n")
    assert user.quick("run", "--json", "--mem", "16G", "train.py").json["warnings"] == []
    (user.project / "yurt.yaml").unlink()
    earlier(user, 1, project=first["data"]["run"]["project"], state="out_of_memory")
    assert user.quick("run", "--json", "--mem", "16G", "train.py").json["warnings"] == []


STEPS = "#!/bin/sh\nsrun python3 burn.py 150 4\n"


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_jobs_and_steps(laptop: Laptop, context: str) -> None:
    burn(laptop)
    (laptop.project / "steps.sh").write_text(STEPS)
    plain = laptop.run(context, "--mem", "700M", "--time", "5", "burn.py", "300", "4")["run"]["id"]
    steps = laptop.run(context, "--mem", "400M", "--time", "5", "sh", "steps.sh")["run"]["id"]
    for run, memory in ((plain, 300), (steps, 150)):
        assert laptop.ended(run)["state"] == "completed"
        found = used(laptop, run)
        spent = float(laptop.quick("logs", run).out.split("cpu ")[1].split()[0])
        assert memory <= found["memory_mb"] <= memory * 1.1 + 12, found
        assert spent * 0.85 <= found["cpu_seconds"] <= spent * 1.15 + 1.5, (spent, found)
        assert found["memory_limit_mb"] == (700 if run == plain else 400)


def test_killed_job(laptop: Laptop, lab: Lab) -> None:
    """Of a job that Slurm kills without warning, the samples say what it had used."""
    burn(laptop)
    run = laptop.run("beta", "--mem", "700M", "--time", "5", "burn.py", "200", "600")["run"]["id"]
    laptop.starts(run)
    eventually(lambda: ((laptop.quick("show", run, "--json").json["data"]["usage"] or {}).get("memory_mb") or 0) >= 190)
    job = laptop.row(run)["job"]
    Ssh(lab)("beta", f"scancel --signal=KILL --full {job}")
    assert laptop.ended(run)["state"] != "completed"
    laptop.quick("ps")
    found = used(laptop, run)
    assert 190 <= found["memory_mb"] <= 230 and found["cpu_seconds"] > 0
