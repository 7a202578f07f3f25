"""Cost of the lab: start-up time (relative to a loop over 10 million squares), memory, idle CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, table

YURT = str(Path(sys.executable).parent / "yurt")


def seconds(argv: list[str], environment: dict[str, str]) -> float:
    started = time.monotonic()
    subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.monotonic() - started


def main() -> int:
    if os.geteuid() != 0:
        print("lab: skipped; the lab needs root")
        return 0
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "YURT_CONFIG_HOME": f"{home}/config", "YURT_DATA_HOME": f"{home}/data"}
        baseline = seconds([sys.executable, "-c", "sum(i * i for i in range(10**7))"], environment)
        up, down = [YURT, "lab", "up", "--json"], [YURT, "lab", "down"]
        rows = {"first up": (up, 60.0), "up again": (up, None), "down": (down, None), "up after down": (up, 25.0)}
        times = [Figure(name, seconds(argv, environment) / baseline, budget) for name, (argv, budget) in rows.items()]
        program = (
            "import msgspec; from yurt.lab import manage as lab; "
            "print(msgspec.json.encode(lab.figures(seconds=20)).decode())"
        )
        time.sleep(20)
        idle = json.loads(subprocess.check_output([sys.executable, "-c", program], env=environment))
        subprocess.run([YURT, "lab", "down", "--wipe"], env=environment, capture_output=True, check=True)
    idle_figures = [
        Figure("memory, MiB", idle["memory"] / (1 << 20), 300),
        Figure("idle CPU, percent of one core", idle["idle_percent"], 1),
    ]
    codes = [
        table("lab, both clusters", times, "x baseline"),
        table("lab, both clusters, idle", idle_figures),
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
