"""Cost of `ps`, `logs` and `show` over an open connection to alpha, compared with `ssh squeue` and `ssh cat`.

Each may take as long as `ps --cached`, which starts Python and reads the index, plus 1.3 times the same question over a
multiplexed ssh. The value is the share of that.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.figures import Figure, table
from benchmarks.ps import example
from benchmarks.side_by_side import YURT, Bench, alpha, median, project
from benchmarks.sweep_ps import HOLD, homes

if TYPE_CHECKING:
    from yurt.model.run import Run

TURNS = 11
QUESTION = 1.3
"""How many times the time of the question over a multiplexed ssh a verb may add to `ps --cached`."""
SIZES = (1, 200, 2_000)
TASKS = 10_000
WARM = 4
"""How often a verb is called first: states are confirmed, scripts kept, and the query is saved."""

SUBMIT = """\
submit() { while read -r name; do
  sbatch --hold --parsable --job-name=$name --output=/dev/null --wrap=true > /dev/null || exit 1
done; }
for part in 1 2 3 4; do sed -n "$part~4p" names | submit & pids="$pids $!"; done
for each in $pids; do wait $each || exit 1; done
"""
"""Submits held jobs with the names in a file, four at a time."""


def queue(bench: Bench, more: dict[str, str], runs: Sequence[Run]) -> None:
    """Put held runs into the queue and the index."""
    from yurt.model.run import Status
    from yurt.store import Found, Store

    held = Status(state="held", submitted=time.time() - 500)
    with Store(f"{more['YURT_DATA_HOME']}/yurt.db") as store:
        store.add_found([Found(run, held, None) for run in runs])
    names = "".join(f"yurt-{run.id}\n" for run in runs)
    subprocess.run([*bench.ssh, "alice@alpha", f"cat > names && {{ {SUBMIT} }}"], input=names, text=True, check=True)


def cancel(bench: Bench) -> None:
    """Cancel all jobs and wait until the queue has none; those that have ended stay listed for minutes."""
    bench.call(
        [*bench.ssh, "alice@alpha", 'while [ -n "$(squeue -h -u alice)" ]; do scancel -u alice; sleep 0.2; done']
    )


def share(bench: Bench, verb: Sequence[str], question: Sequence[str], more: dict[str, str], label: str) -> Figure:
    """Return the time of a verb as a share of `ps --cached` and 1.3 times the question."""
    for _turn in range(WARM):
        bench.call(verb, more=more)
    bare, ours, cached = [], [], []
    for _turn in range(TURNS):
        bare.append(bench.seconds(question))
        ours.append(bench.seconds(verb, more=more))
        cached.append(bench.seconds([YURT, "ps", "--cached"], more=more))
    asked, listed, took = median(bare), median(cached), median(ours)
    if os.environ.get("BENCH_TIMES"):
        print(f"  {label}: question {asked:.4f} s, ps --cached {listed:.4f} s, {took:.4f} s")
    return Figure(label, took / (listed + QUESTION * asked), 1.0)


def main() -> int:
    if os.geteuid() != 0:
        print("reads: skipped; the lab needs root")
        return 0
    figures = []
    with alpha() as bench:
        own = f"{bench.home}/own"
        bench.call([*bench.ssh, "-M", "-N", "-f", "-S", own, "alice@alpha"])
        over = [*bench.ssh, "-S", own, "alice@alpha"]
        ps = [YURT, "ps", "--context", "alpha"]

        more = homes(bench, "one")
        source = project(bench.home / "project", files=20)
        words = "echo hello; sleep 3000"
        bench.call([YURT, "--context", "alpha", "run", "--time", "1h", "sh", "-c", words], folder=source, more=more)
        while "hello" not in bench.call([YURT, "logs", "@last"], more=more):
            time.sleep(0.5)
        folder = bench.call([*over, "ls -d /lustre/scratch/alice/yurt/projects/*/runs/*/ | head -n 1"]).strip()
        cat = [*over, f"cat {folder}out.log {folder}err.log"]
        figures.append(share(bench, [YURT, "logs", "@last"], cat, more, "logs of a running run"))
        figures.append(share(bench, [YURT, "show", "@last"], cat, more, "show of a running run"))
        cancel(bench)

        bench.call([YURT, "lab", "shell", "alpha:ctl", "--", *HOLD.split()])
        more = homes(bench, "sweep")
        grid = f"seed=1..{TASKS}"
        bench.call(
            [YURT, "--context", "alpha", "run", "--time", "5m", "--grid", grid, "true"], folder=source, more=more
        )
        sweep = share(bench, ps, [*over, "squeue"], more, f"ps, a sweep of {TASKS:,} tasks")
        cancel(bench)
        more, now = homes(bench, "runs"), time.time()
        runs = [example(number, SIZES[-1], now) for number in range(SIZES[-1])]
        for before, size in itertools.pairwise((0, *SIZES)):
            queue(bench, more, runs[before:size])
            figures.append(share(bench, ps, [*over, "squeue"], more, f"ps, {size:,} runs in the queue"))
        figures.append(sweep)
        subprocess.run([*over[:-1], "-O", "exit", "alice@alpha"], capture_output=True, check=False)
    return table("ps, logs and show over ssh", figures, "x allowed")


if __name__ == "__main__":
    sys.exit(main())
