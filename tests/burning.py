"""Runs that use a known amount of memory and CPU time."""

from __future__ import annotations

from typing import Any

from tests.laptop import Laptop
from tests.user import User

BURN = """\
import os, sys, time
begun = time.monotonic()
data = bytearray(int(sys.argv[1]) << 20)
data[::4096] = b"1" * len(data[::4096])
while time.process_time() < float(sys.argv[2]) and time.monotonic() < begun + 30: pass
print(f"cpu {sum(os.times()[:2])}", flush=True)
"""
"""Uses so many MB and so many seconds of CPU time, but never takes longer than 30 seconds."""

STEPS = "#!/bin/sh\nsrun python3 burn.py 150 4\n"


def burn(user: User) -> None:
    (user.project / "burn.py").write_text(BURN)


def used(user: User, run: str) -> dict[str, Any]:
    """Return what a run used, and its folder."""
    shown = user.quick("show", run, "--json").json["data"]
    return {**(shown["usage"] or {}), "folder": shown["run"]["folder"]}


def check_steps(laptop: Laptop, context: str) -> None:
    """Check what a run and a step of srun used."""
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
