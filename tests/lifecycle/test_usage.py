"""What runs used: in `show` and `ps`, and as advice; of local runs, and of a job."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.burning import burn, check_steps, used
from tests.laptop import Laptop
from tests.user import User
from yurt.model import ids
from yurt.model.run import Resources, Run, Status
from yurt.model.usage import Usage
from yurt.store import Store
from yurt.testing.waiting import eventually


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
    """Its memory is known, from samples or from the kernel, however quick the machine is."""
    burn(user)
    assert user.quick("run", "-q", "--cpus", "2", "--mem", "2G", "--follow", "burn.py", "200", "0.1").code == 0
    found = used(user, "-")
    assert 190 <= found["memory_mb"] <= 230 and 0.1 <= found["cpu_seconds"] <= 1.5, found
    which = " (largest process)" if found.get("largest_process") else ""
    text = user.quick("show", "-").out
    assert " of 2 CPUs (" in text and f", {found['memory_mb']}M{which} of 2G memory, " in text
    assert f" {found['memory_mb']}M " in user.quick("ps", "--wide").out
    assert max(user.quick("show", "-", "--usage", "--json").json["data"]["usage_curve"]["memory_mb"]) >= 190


def test_short_run_that_is_killed(user: User) -> None:
    """`why` says what it used if that is not far from what it asked for."""
    command = "data = bytearray(200 << 20); import os; os.kill(os.getpid(), 9)"
    assert user.quick("run", "-q", "--mem", "300M", "--follow", "python3", "-c", command).code == 1
    found = used(user, "-")
    assert 200 <= found["memory_mb"] <= 230, found
    assert f"for lack of memory; measured: {found['memory_mb']} MB" in user.quick("why", "-").out


def test_running_and_cancelled_run(user: User) -> None:
    burn(user)
    run = user.quick("run", "-q", "burn.py", "100", "600").out.strip()
    try:
        eventually(lambda: (used(user, run).get("memory_mb") or 0) >= 95)
        eventually(lambda: used(user, run)["seconds"] >= 1.5)
    finally:
        assert user.quick("cancel", run).code == 0
    assert user.quick("wait", run, "--timeout", "60").code == 1
    found = used(user, run)
    assert 95 <= found["memory_mb"] <= 125 and found["cpu_seconds"] > 0
    assert not processes_of(found["folder"])


def sampler_of(folder: Path) -> list[int]:
    found = []
    for each in processes_of(str(folder)):
        with suppress(OSError):
            if b"sample" in Path(f"/proc/{each}/cmdline").read_bytes().split(b"\0"):
                found.append(int(each))
    return found


def test_killed_job_shell(user: User) -> None:
    """The sampler does not outlive it for long."""
    burn(user)
    run = user.quick("run", "-q", "burn.py", "10", "600").out.strip()
    try:
        folder = Path(used(user, run)["folder"])
        eventually((folder / "usage").exists)
        words = Path(f"/proc/{sampler_of(folder)[0]}/cmdline").read_bytes().split(b"\0")
        _sample, _start, command, shell, _born = words[words.index(b"sample") :][:5]
        os.kill(int(shell), 9)
        os.killpg(int(command), 9)
        eventually(lambda: not sampler_of(folder), seconds=20)
    finally:
        user.quick("cancel", run)


@pytest.mark.slow
def test_killed_sampler(user: User) -> None:
    """The run goes on without it, and its CPU time is still known."""
    burn(user)
    run = user.quick("run", "-q", "burn.py", "10", "2").out.strip()
    folder = Path(used(user, run)["folder"])
    eventually((folder / "usage").exists)
    for each in sampler_of(folder):
        os.kill(each, 9)
    assert user.quick("wait", run).code == 0
    found = used(user, run)
    assert found["cpu_seconds"] >= 1.9 and 10 <= found.get("memory_mb", 15) <= 25


@pytest.mark.slow
def test_sweep_tasks(user: User) -> None:
    burn(user)
    done = user.quick("run", "-q", "--grid", "mb=20,60,150", "--follow", "burn.py", "{mb}", "1.5")
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
                id=ids.make(made, secrets.randbelow(2**25)),
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

    retried = user.quick("retry", first["data"]["run"]["id"], "--json").json
    assert retried["warnings"] == [] and user.quick("wait", "-").code == 0


def test_advice_for_sweeps_and_retries(user: User) -> None:
    first = user.quick("run", "--json", "--mem", "16G", "train.py").json["data"]["run"]
    earlier(user, 41, project=first["project"])
    for words in (["run", "--mem", "16G", "--grid", "n=1..2", "train.py", "--n={n}"], ["retry", first["id"]]):
        assert "ask for 3G instead of 16G with `--mem 3G`: 4" in user.quick(*words).err
        assert user.quick("wait", "-").code == 0


@pytest.mark.slow
def test_job_with_steps(laptop: Laptop) -> None:
    """More of them in test_usage_jobs.py."""
    check_steps(laptop, "alpha")
