"""Time to submit a sweep over ssh to alpha, compared with submitit, SlurmDeck and a loop of sbatch.

The partition accepts jobs but starts none, so only the submission is measured. Each turn starts with an empty queue.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.counts import files_changed, peak_kib, ssh_executions
from benchmarks.figures import Figure, table
from benchmarks.peers import SlurmDeck, Submitit, Unavailable
from benchmarks.side_by_side import YURT, Bench, alpha, median, project

TURNS, LOOP = 5, 50
MANY = 1000
STORAGE = "/lustre/scratch/alice"


def run(sets: int) -> list[str]:
    """Return the command of a sweep with `sets` parameter sets."""
    grid = ["--grid", "lr=0.1..1.0..0.1", "--grid", f"seed=1..{sets // 10}"]
    return [YURT, "--context", "alpha", "run", "--time", "5m", *grid, "true"]


def empty_queue(bench: Bench) -> None:
    bench.call(
        [*bench.ssh, "alice@alpha", "scancel -u alice; while squeue -h -u alice | grep -q .; do sleep 0.2; done"]
    )


def peers(bench: Bench) -> tuple[SlurmDeck | None, Submitit | None]:
    deck, submitit = None, None
    try:
        deck = SlurmDeck(bench, bench.home / "project")
        values = ", ".join(str(number) for number in range(1, MANY // 10 + 1))
        rates = ", ".join(f"0.{number}" for number in range(1, 10)) + ", 1.0"
        (deck.folder / "sweep.yaml").write_text(f"version: 1\nparameters:\n  lr: [{rates}]\n  seed: [{values}]\n")
        deck.submit("--sweep", "sweep.yaml", command=("true", "{args}"))
    except Unavailable as error:
        print(error)
    try:
        submitit = Submitit(bench)
    except Unavailable as error:
        print(error)
    return deck, submitit


def main() -> int:
    if os.geteuid() != 0:
        print("sweep: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        bench.call([YURT, "lab", "shell", "alpha:ctl", "--", "scontrol", "update", "PartitionName=main", "State=DOWN"])
        source = project(bench.home / "project")
        bench.call(run(100), folder=source)
        deck, submitit = peers(bench)
        own = ["-S", f"{bench.home}/own"]
        bench.call([*bench.ssh, "-M", "-N", "-f", *own, "alice@alpha"])
        sbatch = [*bench.ssh, *own, "alice@alpha", "sbatch --parsable --output=/dev/null --wrap=true"]
        rows: dict[str, list[float]] = {name: [] for name in ("yurt", "few", "lots", "submitit", "deck", "loop")}
        for _turn in range(TURNS):
            empty_queue(bench)
            rows["yurt"].append(bench.seconds(run(MANY), folder=source))
            if submitit is not None:
                rows["submitit"].append(submitit.map_array(MANY))
            if deck is not None:
                rows["deck"].append(deck.submit("--sweep", "sweep.yaml", command=("true", "{args}")))
            rows["few"].append(bench.seconds(run(100), folder=source))
            rows["loop"].append(sum(bench.seconds(sbatch) for _each in range(LOOP // TURNS)) / (LOOP // TURNS) * MANY)
            rows["lots"].append(bench.seconds(run(10_000), folder=source))
        queued = int(bench.call([*bench.ssh, "alice@alpha", "squeue -h -r -u alice | grep -c yurt-"]))
        assert queued == MANY + 100 + 10_000, f"{queued} tasks in the queue"
        empty_queue(bench)
        subprocess.run([*bench.ssh, *own, "-O", "exit", "alice@alpha"], capture_output=True, check=False)
        created = files_changed(bench, STORAGE, lambda: bench.call(run(MANY), folder=source))
        trips = ssh_executions(bench, run(MANY), source)
        peak = peak_kib(bench, run(10_000), source) / 1024
    ours = median(rows["yurt"])
    figures = [Figure("yurt run --grid, 1,000 tasks, s", ours)]
    if submitit is not None:
        figures.append(Figure("submitit map_array on the login node, s", median(rows["submitit"])))
        figures.append(Figure("  yurt, x submitit", ours / median(rows["submitit"]), 1.5))
    if deck is not None:
        figures.append(Figure("SlurmDeck 0.4, s", median(rows["deck"])))
        figures.append(Figure("  yurt, x SlurmDeck", ours / median(rows["deck"]), 0.3))
    figures += [
        Figure(f"multiplexed ssh sbatch, {LOOP} scaled to {MANY:,}, s", median(rows["loop"])),
        Figure("  speed-up of yurt", median(rows["loop"]) / ours, 20, least=True),
        Figure("yurt, 10,000 tasks, x 100 tasks", median(rows["lots"]) / median(rows["few"]), 3),
        Figure("  peak memory, MiB", peak, 200),
        Figure("files created for 1,000 tasks", created, 9),
        Figure("ssh executions for 1,000 tasks", trips, 2),
    ]
    return table("submission of a sweep, 2,000 files", figures)


if __name__ == "__main__":
    sys.exit(main())
