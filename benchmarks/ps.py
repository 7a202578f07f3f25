"""Cost of `yurt ps` with 10,000 runs in the index, 2,000 of them in alpha's queue, compared with `ssh squeue`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.counts import peak_kib
from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import YURT, Bench, alpha, median

if TYPE_CHECKING:
    from yurt.model.run import Run

RUNS, QUEUED, TURNS = 10_000, 2_000, 9
BUDGET, MEMORY, CACHED = 3, 100, 8

LOOP = """\
while read -r name; do sbatch --hold --parsable --job-name=$name --output=/dev/null --wrap=true > /dev/null; done
"""


def example(number: int, count: int, now: float) -> Run:
    """Return one of several runs on alpha, as the index has them."""
    from yurt.model import ids
    from yurt.model.run import Chosen, Code, Run

    run_id = ids.make(now - count + number, number * 7919)
    return Run(
        id=run_id,
        context="alpha",
        context_type="slurm",
        project="bench-0000",
        source="/home/me/bench",
        created=now - count + number,
        command=["train.py", "--lr", "0.1", "--seed", str(number)],
        folder=f"/lustre/scratch/alice/yurt/projects/bench-0000/runs/{run_id}",
        params={"lr": 0.1, "seed": number},
        code=Code(tree="0" * 40, files=2000, size=20_000_000, commit="0" * 40, branch="main"),
        settings=[Chosen(key, "value", "contexts.yaml:3") for key in ("time", "partition", "storage_dir")],
    )


def fill(bench: Bench) -> None:
    """Add runs as after months of work: most have completed, the newest are in the queue."""
    from yurt.model.run import Status
    from yurt.store import Store

    now = time.time()
    names = []
    with Store(f"{bench.home}/data/yurt.db") as store:
        for number in range(RUNS):
            run = example(number, RUNS, now)
            queued = number >= RUNS - QUEUED
            held = Status(state="held", job=str(number), submitted=now - 500)
            store.add(run, held if queued else Status(state="completed"))
            if queued:
                names.append(f"yurt-{run.id}")
    subprocess.run([*bench.ssh, "alice@alpha", LOOP], input="\n".join(names) + "\n", text=True, check=True)


def main() -> int:
    if os.geteuid() != 0:
        print("ps: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        fill(bench)
        own = f"{bench.home}/own"
        bench.call([*bench.ssh, "-M", "-N", "-f", "-S", own, "alice@alpha"])
        squeue = [*bench.ssh, "-S", own, "alice@alpha", "squeue"]
        shown = bench.call(squeue).count("\n")
        assert shown > QUEUED, f"only {shown} jobs in the queue"
        ps = [YURT, "ps", "--context", "alpha"]
        bench.call(ps)
        bare, ours = [], []
        for _turn in range(TURNS):
            bare.append(bench.seconds(squeue))
            ours.append(bench.seconds(ps))
        assert '"held"' in bench.call([*ps, "--json"])
        peak = peak_kib(bench, ps) / 1024
        os.environ |= {"YURT_DATA_HOME": f"{bench.home}/data", "YURT_CONFIG_HOME": f"{bench.home}/config"}
        unit = instructions([sys.executable, "-c", "pass"])
        cached = instructions([YURT, "ps", "--cached", "--json"]) / unit
        subprocess.run([*bench.ssh, "-S", own, "-O", "exit", "alice@alpha"], capture_output=True, check=False)
    figures = [
        Figure("yurt ps, x multiplexed ssh squeue", median(ours) / median(bare), BUDGET),
        Figure("  peak memory, MiB", peak, MEMORY),
        Figure("ps --cached --json, x python -c pass", cached, CACHED),
    ]
    return table("ps, 10,000 runs, 2,000 in the queue", figures)


if __name__ == "__main__":
    sys.exit(main())
