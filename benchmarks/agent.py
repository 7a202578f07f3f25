"""Measures the idle agent: its share of a core and its memory, with an unfinished run and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, alpha

SECONDS = 60
TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def usage(pid: int) -> tuple[float, float]:
    """Return the share of a core in per cent over some time, with its children, and the memory in MiB."""
    before, began = cpu(pid), time.monotonic()
    time.sleep(SECONDS)
    share = 100 * (cpu(pid) - before) / (time.monotonic() - began)
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return share, kib / 1024


def cpu(pid: int) -> float:
    """Return the processor seconds of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICK


def main() -> int:
    if os.geteuid() != 0 or not Path("/proc/self/stat").exists():
        print("agent: SKIPPED: the lab needs root, and Linux is needed")
        return 0
    with alpha() as bench:
        project = bench.home / "project"
        project.mkdir()
        bench.call([YURT, "agent", "start"])
        try:
            pid = json.loads(bench.call([YURT, "agent", "status", "--json"]))["data"]["state"]["pid"]
            idle = usage(pid)
            bench.call([YURT, "run", "--context", "alpha", "--", "sleep", "600"], folder=project)
            time.sleep(10)
            busy = usage(pid)
        finally:
            subprocess.run([YURT, "agent", "stop"], env=bench.environment, capture_output=True, check=False)
            subprocess.run([YURT, "cancel", "-"], env=bench.environment, capture_output=True, check=False)
    return table(
        "the agent",
        [
            Figure("no unfinished run: per cent of a core", idle[0], 0.5),
            Figure("no unfinished run: MiB", idle[1], 60),
            Figure("one run that does not change: per cent", busy[0]),
            Figure("one run that does not change: MiB", busy[1], 60),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
