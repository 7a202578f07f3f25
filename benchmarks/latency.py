"""Round trips of one submission: how much longer it takes if each one takes 150 ms, compared with `ssh -S … sbatch`.

A command with input takes one round trip more than one without: sshd accepts input only after the command has started.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.side_by_side import YURT, Bench, alpha, median, project
from benchmarks.submit import SBATCH

TURNS = 7
DELAY = 75
"""Milliseconds each way."""


def measure(bench: Bench, commands: list[list[str]], run: list[str], source: Path) -> list[float]:
    """Return the median seconds of some commands and of a submission by yurt, all over an open connection."""
    subprocess.run(
        [*bench.ssh, "-S", f"{bench.home}/own", "-O", "exit", "alice@alpha"], capture_output=True, check=False
    )
    subprocess.run([YURT, "login", "--close", "alpha"], env=bench.environment, capture_output=True, check=False)
    bench.call([*bench.ssh, "-M", "-N", "-f", "-S", f"{bench.home}/own", "alice@alpha"])
    for _turn in range(2):  # opens the connection, and lets the site keep the scripts
        bench.call(run, folder=source)
    times: list[list[float]] = [[] for _each in [*commands, run]]
    for _turn in range(TURNS):
        for each, command in zip(times, [*commands, run], strict=True):
            each.append(bench.seconds(command, folder=source))
    return [median(each) for each in times]


def main() -> int:
    if os.geteuid() != 0:
        print("latency: SKIPPED: the lab needs root")
        return 0
    with alpha() as bench:
        source = project(bench.home / "project", files=20)
        run = [YURT, "--context", "alpha", "run", "--time", "5m", "true"]
        ssh = [*bench.ssh, "-S", f"{bench.home}/own", "alice@alpha"]
        fed = ["sh", "-c", f"head -c 15000 /dev/zero | {shlex.join([*ssh, f'cat > /dev/null; {SBATCH}'])}"]
        commands = [[*ssh, SBATCH], fed]
        near = measure(bench, commands, run, source)
        bench.call([YURT, "lab", "fault", "delay", "alpha", "--ms", str(DELAY)])
        far = measure(bench, commands, run, source)
        subprocess.run([*ssh, "-O", "exit"], capture_output=True, check=False)
    plain, with_input, ours = [(slow - fast) / (2 * DELAY / 1000) for slow, fast in zip(far, near, strict=True)]
    figures = [
        Figure("ssh -S … sbatch", plain),
        Figure("ssh -S … sbatch, with 15 KB of input", with_input),
        Figure("yurt run, code unchanged", ours, 2.5),
    ]
    return table("one submission at 150 ms", figures, "round trips")


if __name__ == "__main__":
    sys.exit(main())
