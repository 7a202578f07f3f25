"""From Enter to job id, whole commands over ssh to alpha, turn by turn beside `ssh sbatch`, tar and SlurmDeck 0.4."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time

from benchmarks.counts import ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.peers import Absent, SlurmDeck
from benchmarks.side_by_side import YURT, alpha, middle, project

TURNS, FIRST_TURNS = 15, 5
SBATCH = "sbatch --parsable --output=/dev/null --wrap=true"


def main() -> int:
    if os.geteuid() != 0:
        print("submit: left out, it needs the lab and the lab needs root")
        return 0
    with alpha() as bench:
        source = project(bench.home / "project")
        run = [YURT, "--context", "alpha", "run", "--time", "5m", "true"]
        bench.call(run, folder=source)
        try:
            peer = SlurmDeck(bench, source)
        except Absent as error:
            print(error)
            peer = None
        rows: dict[str, list[float]] = {name: [] for name in ("plain", "multiplexed", "unchanged", "edited", "peer")}
        plain = [*bench.ssh, "alice@alpha", SBATCH]
        shared = [*bench.ssh, "-S", f"{bench.home}/own", "alice@alpha", SBATCH]
        bench.call([*bench.ssh, "-M", "-N", "-f", "-S", f"{bench.home}/own", "alice@alpha"])
        for turn in range(TURNS):
            rows["plain"].append(bench.seconds(plain))
            rows["unchanged"].append(bench.seconds(run, folder=source))
            rows["multiplexed"].append(bench.seconds(shared))
            (source / "d0" / "f0.py").write_text(f"turn = {turn} # {time.time()}\n")
            rows["edited"].append(bench.seconds(run, folder=source))
            if peer is not None and turn % 3 == 0:
                rows["peer"].append(peer.submit())
        subprocess.run(
            [*bench.ssh, "-S", f"{bench.home}/own", "-O", "exit", "alice@alpha"], capture_output=True, check=False
        )
        tar, first = [], []
        for turn in range(FIRST_TURNS):
            command = f"tar c -C {source} . | {shlex.join(bench.ssh)} alice@alpha 'mkdir t{turn} && tar x -C t{turn}'"
            tar.append(bench.seconds(["sh", "-c", command]) + bench.seconds(plain))
            fresh = bench.home / f"fresh{turn}"
            shutil.copytree(source, fresh)
            first.append(bench.seconds(run, folder=fresh))
        executions = ssh_executions(bench, run, source)
    unit = middle(rows["plain"])
    figures = [
        Figure("ssh sbatch", 1.0),
        Figure("ssh sbatch, multiplexed", middle(rows["multiplexed"]) / unit),
        Figure("yurt run, code unchanged", middle(rows["unchanged"]) / unit, 1.5),
        Figure("yurt run, one file edited", middle(rows["edited"]) / unit, 2.5),
        Figure("tar | ssh tar, and ssh sbatch", middle(tar) / unit),
        Figure("yurt run, first time", middle(first) / unit),
        Figure("yurt run, first time, of tar", middle(first) / middle(tar), 3),
        Figure("ssh executions, unchanged", executions, 2),
    ]
    if peer is not None:
        figures.append(Figure("SlurmDeck 0.4, code unchanged", middle(rows["peer"]) / unit))
        figures.append(
            Figure("yurt run unchanged, of SlurmDeck", middle(rows["unchanged"]) / middle(rows["peer"]), 0.25)
        )
    return table("from Enter to job id, 2,000 files", figures, "of ssh sbatch")


if __name__ == "__main__":
    sys.exit(main())
