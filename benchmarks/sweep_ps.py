"""What `yurt ps` costs while nothing changes, with a sweep of 10,000 tasks beside one of 100, over ssh to alpha.

Once with all of them in the queue, and once with all but one of them ended: neither may cost what its size is.
"""

from __future__ import annotations

import os
import sys

from benchmarks.counts import carried
from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import YURT, Bench, alpha, middle, project

TURNS = 9
FEW, MANY = 100, 10_000
TIME, BYTES, INSTRUCTIONS = 1.2, 1.1, 1.1
HOLD = "scontrol update PartitionName=main State=DOWN"
PS = [YURT, "--context", "alpha", "ps"]


def sweep(sets: int) -> list[str]:
    return [YURT, "--context", "alpha", "run", "--time", "5m", "--grid", f"seed=1..{sets}", "true"]


def homes(bench: Bench, name: str) -> dict[str, str]:
    """An index of its own, which knows alpha by the same files."""
    data = bench.home / f"data-{name}"
    data.mkdir()
    (data / "lab").symlink_to(bench.home / "data" / "lab")
    return {"YURT_DATA_HOME": str(data)}


def end_all_but_one(bench: Bench, more: dict[str, str], sets: int) -> None:
    """As it is when the last task goes on: the queue has that one only, and the index an ending of every other."""
    from yurt.model.run import Status
    from yurt.store import Store

    with Store(f"{more['YURT_DATA_HOME']}/yurt.db") as store:
        (entry,) = store.newest(1)
        job = entry.status.job
        bench.call([*bench.ssh, "alice@alpha", f"scancel {job}_[1-{sets - 1}]"])
        over = Status(state="completed", job=f"{job}_1", exit_code=0, attempts=1)
        store.change_tasks(entry.run.id, range(1, sets), lambda _number, _status: over)


def measure(bench: Bench, more: dict[str, dict[str, str]], *, ended: bool) -> list[Figure]:
    times: dict[str, list[float]] = {name: [] for name in more}
    for each in more.values():
        bench.call(PS, more=each)
        bench.call(PS, more=each)
    for _turn in range(TURNS):
        for name, each in more.items():
            times[name].append(bench.seconds(PS, more=each))
    wire = {name: carried(bench, PS, each) for name, each in more.items()}
    steps = {name: instructions(PS, {**bench.environment, **each}) for name, each in more.items()}
    what = "all ended but one" if ended else "all queued"
    return [
        Figure(f"{what}: time, of {FEW}", middle(times["many"]) / middle(times["few"]), TIME),
        Figure("  bytes over the wire, both ways", wire["many"] / wire["few"], BYTES),
        Figure("  instructions here", steps["many"] / steps["few"], INSTRUCTIONS),
    ]


def main() -> int:
    if os.geteuid() != 0:
        print("sweep_ps: left out, it needs the lab and the lab needs root")
        return 0
    with alpha() as bench:
        bench.call([YURT, "lab", "shell", "alpha:ctl", "--", *HOLD.split()])
        source = project(bench.home / "project", files=20)
        more = {name: homes(bench, name) for name in ("few", "many")}
        sizes = {"few": FEW, "many": MANY}
        for name, sets in sizes.items():
            bench.call(sweep(sets), folder=source, more=more[name])
        figures = measure(bench, more, ended=False)
        for name, sets in sizes.items():
            end_all_but_one(bench, more[name], sets)
        bench.call(
            [*bench.ssh, "alice@alpha", "while [ $(squeue -h -t all -u alice | wc -l) -gt 2 ]; do sleep 1; done"]
        )
        figures += measure(bench, more, ended=True)
    return table(f"yurt ps, nothing changed, {MANY:,} tasks of {FEW}", figures)


if __name__ == "__main__":
    sys.exit(main())
