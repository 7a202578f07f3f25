"""What a sweep costs from Enter to its job ids, over ssh to alpha, beside submitit, SlurmDeck and a loop of sbatch.

The partition takes jobs but starts none, so that what is measured is the queueing. The queue is emptied between turns.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.counts import files_since, peak_kib, ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.peers import Absent, SlurmDeck, Submitit
from benchmarks.side_by_side import YURT, Bench, alpha, middle, project

TURNS, LOOP = 5, 50
MANY = 1000
STORAGE = "/lustre/scratch/alice"


def run(sets: int) -> list[str]:
    """A sweep of so many parameter sets."""
    grid = ["--grid", "lr=0.1..1.0..0.1", "--grid", f"seed=1..{sets // 10}"]
    return [YURT, "--context", "alpha", "run", "--time", "5m", *grid, "true"]


def empty_queue(bench: Bench) -> None:
    bench.call(
        [*bench.ssh, "alice@alpha", "scancel -u alice; while squeue -h -u alice | grep -q .; do sleep 0.2; done"]
    )


def peers(bench: Bench) -> tuple[SlurmDeck | None, Submitit | None]:
    deck, itit = None, None
    try:
        deck = SlurmDeck(bench, bench.home / "project")
        values = ", ".join(str(number) for number in range(1, MANY // 10 + 1))
        rates = ", ".join(f"0.{number}" for number in range(1, 10)) + ", 1.0"
        (deck.folder / "sweep.yaml").write_text(f"version: 1\nparameters:\n  lr: [{rates}]\n  seed: [{values}]\n")
        deck.submit("--sweep", "sweep.yaml", command=("true", "{args}"))
    except Absent as error:
        print(error)
    try:
        itit = Submitit(bench)
    except Absent as error:
        print(error)
    return deck, itit


def main() -> int:
    if os.geteuid() != 0:
        print("sweep: left out, it needs the lab and the lab needs root")
        return 0
    with alpha() as bench:
        bench.call([YURT, "lab", "shell", "alpha:ctl", "--", "scontrol", "update", "PartitionName=main", "State=DOWN"])
        source = project(bench.home / "project")
        bench.call(run(100), folder=source)
        deck, itit = peers(bench)
        own = ["-S", f"{bench.home}/own"]
        bench.call([*bench.ssh, "-M", "-N", "-f", *own, "alice@alpha"])
        sbatch = [*bench.ssh, *own, "alice@alpha", "sbatch --parsable --output=/dev/null --wrap=true"]
        rows: dict[str, list[float]] = {name: [] for name in ("yurt", "few", "lots", "submitit", "deck", "loop")}
        for _turn in range(TURNS):
            empty_queue(bench)
            rows["yurt"].append(bench.seconds(run(MANY), folder=source))
            if itit is not None:
                rows["submitit"].append(itit.map_array(MANY))
            if deck is not None:
                rows["deck"].append(deck.submit("--sweep", "sweep.yaml", command=("true", "{args}")))
            rows["few"].append(bench.seconds(run(100), folder=source))
            rows["loop"].append(sum(bench.seconds(sbatch) for _each in range(LOOP // TURNS)) / (LOOP // TURNS) * MANY)
            rows["lots"].append(bench.seconds(run(10_000), folder=source))
        queued = int(bench.call([*bench.ssh, "alice@alpha", "squeue -h -r -u alice | grep -c yurt-"]))
        assert queued == MANY + 100 + 10_000, f"{queued} tasks of yurt's in the queue"
        empty_queue(bench)
        subprocess.run([*bench.ssh, *own, "-O", "exit", "alice@alpha"], capture_output=True, check=False)
        created = files_since(bench, STORAGE, lambda: bench.call(run(MANY), folder=source))
        trips = ssh_executions(bench, run(MANY), source)
        peak = peak_kib(bench, run(10_000), source) / 1024
    ours = middle(rows["yurt"])
    figures = [Figure("yurt run --grid, 1,000 tasks, seconds", ours)]
    if itit is not None:
        figures.append(Figure("submitit's map_array on the login node, s", middle(rows["submitit"])))
        figures.append(Figure("  yurt, of submitit", ours / middle(rows["submitit"]), 1.5))
    if deck is not None:
        figures.append(Figure("SlurmDeck 0.4, seconds", middle(rows["deck"])))
        figures.append(Figure("  yurt, of SlurmDeck", ours / middle(rows["deck"]), 0.3))
    figures += [
        Figure(f"multiplexed ssh sbatch, {LOOP} scaled to {MANY:,}, s", middle(rows["loop"])),
        Figure("  yurt is so many times faster", middle(rows["loop"]) / ours, 20, least=True),
        Figure("yurt, 10,000 tasks, of 100", middle(rows["lots"]) / middle(rows["few"]), 3),
        Figure("  its peak memory, MiB", peak, 200),
        Figure("files created for 1,000 tasks", created, 9),
        Figure("ssh executions for 1,000 tasks", trips, 2),
    ]
    return table("a sweep from Enter to queued, 2,000 files", figures)


if __name__ == "__main__":
    sys.exit(main())
