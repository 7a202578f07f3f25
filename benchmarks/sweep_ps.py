"""Cost of `yurt ps` for a sweep of 10,000 tasks, compared with one of 100, over ssh to alpha, without changes.

Measured with all tasks in the queue and with all but one finished. The cost must not grow with the number of tasks.
"""

from __future__ import annotations

import os
import sys

from benchmarks.counts import transferred
from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import YURT, Bench, alpha, median, project

TURNS = 9
FEW, MANY = 100, 10_000
TIME, BYTES, INSTRUCTIONS = 1.2, 1.1, 1.1
HOLD = "scontrol update PartitionName=main State=DOWN"
PS = [YURT, "--context", "alpha", "ps"]


def sweep(sets: int) -> list[str]:
    return [YURT, "--context", "alpha", "run", "--time", "5m", "--grid", f"seed=1..{sets}", "true"]


def homes(bench: Bench, name: str) -> dict[str, str]:
    """Create a separate index that uses the same lab; return its environment."""
    data = bench.home / f"data-{name}"
    data.mkdir()
    (data / "lab").symlink_to(bench.home / "data" / "lab")
    return {"YURT_DATA_HOME": str(data)}


def end_all_but_one(bench: Bench, more: dict[str, str], sets: int) -> None:
    """Leave one task in the queue and record all others as completed in the index."""
    from yurt.model.run import Status
    from yurt.store import Store

    with Store(f"{more['YURT_DATA_HOME']}/yurt.db") as store:
        (entry,) = store.newest(1)
        job = entry.status.job
        bench.call([*bench.ssh, "alice@alpha", f"scancel {job}_[1-{sets - 1}]"])
        completed = Status(state="completed", job=f"{job}_1", exit_code=0, attempts=1)
        store.change_tasks(entry.run.id, range(1, sets), lambda _number, _status: completed)


def measure(bench: Bench, more: dict[str, dict[str, str]], label: str) -> list[Figure]:
    times: dict[str, list[float]] = {name: [] for name in more}
    for each in more.values():
        bench.call(PS, more=each)
        bench.call(PS, more=each)
    for _turn in range(TURNS):
        for name, each in more.items():
            times[name].append(bench.seconds(PS, more=each))
    traffic = {name: transferred(bench, PS, each) for name, each in more.items()}
    counts = {name: instructions(PS, {**bench.environment, **each}) for name, each in more.items()}
    return [
        Figure(f"{label}: time", median(times["many"]) / median(times["few"]), TIME),
        Figure("  bytes sent and received", traffic["many"] / traffic["few"], BYTES),
        Figure("  instructions on this machine", counts["many"] / counts["few"], INSTRUCTIONS),
    ]


def main() -> int:
    if os.geteuid() != 0:
        print("sweep_ps: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        bench.call([YURT, "lab", "shell", "alpha:ctl", "--", *HOLD.split()])
        source = project(bench.home / "project", files=20)
        more = {name: homes(bench, name) for name in ("few", "many")}
        sizes = {"few": FEW, "many": MANY}
        for name, sets in sizes.items():
            bench.call(sweep(sets), folder=source, more=more[name])
        figures = measure(bench, more, "all queued")
        for name, sets in sizes.items():
            end_all_but_one(bench, more[name], sets)
        bench.call(
            [*bench.ssh, "alice@alpha", "while [ $(squeue -h -t all -u alice | wc -l) -gt 2 ]; do sleep 1; done"]
        )
        figures += measure(bench, more, "all but one finished")
    return table(f"yurt ps without changes, {MANY:,} tasks", figures, f"x {FEW} tasks")


if __name__ == "__main__":
    sys.exit(main())
