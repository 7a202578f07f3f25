"""Time from the command to the job id, over ssh to alpha, compared with `ssh sbatch`, tar and SlurmDeck 0.4."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time

from benchmarks.counts import ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.peers import SlurmDeck, Unavailable
from benchmarks.side_by_side import YURT, alpha, median, project

TURNS, FIRST_TURNS = 15, 5
SBATCH = "sbatch --parsable --output=/dev/null --wrap=true"


def main() -> int:
    if os.geteuid() != 0:
        print("submit: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        source = project(bench.home / "project")
        run = [YURT, "--context", "alpha", "run", "--time", "5m", "true"]
        bench.call(run, folder=source)
        try:
            peer = SlurmDeck(bench, source)
        except Unavailable as error:
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
    unit = median(rows["plain"])
    figures = [
        Figure("ssh sbatch", 1.0),
        Figure("ssh sbatch, multiplexed", median(rows["multiplexed"]) / unit),
        Figure("yurt run, code unchanged", median(rows["unchanged"]) / unit, 1.0),
        Figure("yurt run, one file edited", median(rows["edited"]) / unit, 1.2),
        Figure("tar | ssh tar, then ssh sbatch", median(tar) / unit),
        Figure("yurt run, first time", median(first) / unit),
        Figure("yurt run, first time, x tar", median(first) / median(tar), 3),
        Figure("ssh executions, code unchanged", executions, 2),
    ]
    if peer is not None:
        figures.append(Figure("SlurmDeck 0.4, code unchanged", median(rows["peer"]) / unit))
        figures.append(
            Figure("yurt run, code unchanged, x SlurmDeck", median(rows["unchanged"]) / median(rows["peer"]), 0.25)
        )
    return table("from command to job id, 2,000 files", figures, "x ssh sbatch")


if __name__ == "__main__":
    sys.exit(main())
