"""Round trips of one submission: how much longer it takes if each one takes 150 ms, compared with `ssh -S … sbatch`."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha, median, project
from benchmarks.submit import SBATCH

TURNS = 7
DELAY = 75
"""Milliseconds each way."""


def measure(bench: Bench, run: list[str], ssh: list[str], folder: str) -> tuple[float, float]:
    """Return the median seconds of a submission by yurt and by ssh, both over an open connection."""
    subprocess.run(
        [*bench.ssh, "-S", f"{bench.home}/own", "-O", "exit", "alice@alpha"], capture_output=True, check=False
    )
    subprocess.run([YURT, "login", "--close", "alpha"], env=bench.environment, capture_output=True, check=False)
    bench.call([*bench.ssh, "-M", "-N", "-f", "-S", f"{bench.home}/own", "alice@alpha"])
    source = bench.home / folder
    for _turn in range(2):  # opens the connection, and lets the site keep the scripts
        bench.call(run, folder=source)
    ours, theirs = [], []
    for _turn in range(TURNS):
        ours.append(bench.seconds(run, folder=source))
        theirs.append(bench.seconds(ssh))
    return median(ours), median(theirs)


def main() -> int:
    if os.geteuid() != 0:
        print("latency: SKIPPED: the lab needs root")
        return 0
    with alpha() as bench:
        project(bench.home / "project", files=20)
        run = [YURT, "--context", "alpha", "run", "--time", "5m", "true"]
        ssh = [*bench.ssh, "-S", f"{bench.home}/own", "alice@alpha", SBATCH]
        near = measure(bench, run, ssh, "project")
        bench.call([YURT, "lab", "fault", "delay", "alpha", "--ms", str(DELAY)])
        far = measure(bench, run, ssh, "project")
        subprocess.run(
            [*bench.ssh, "-S", f"{bench.home}/own", "-O", "exit", "alice@alpha"], capture_output=True, check=False
        )
    trips = [(slow - fast) / (2 * DELAY / 1000) for slow, fast in zip(far, near, strict=True)]
    figures = [
        Figure("ssh -S … sbatch", trips[1]),
        Figure("yurt run, code unchanged", trips[0], 2.5),
    ]
    return table("one submission at 150 ms", figures, "round trips")


if __name__ == "__main__":
    sys.exit(main())
