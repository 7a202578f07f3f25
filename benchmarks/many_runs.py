"""CPU and ssh sessions of verbs over many runs on alpha: cancel 400 tasks and 20 runs, import and prune 1,000 runs.

CPU is that of yurt on this machine plus that of the login node. The folders of the runs are copies of a real one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.login_node import LoginNode
from benchmarks.side_by_side import YURT, Bench, alpha, project

TASKS, SINGLE, RUNS = 400, 20, 1000
BUDGET = 2.0
"""CPU seconds for 1,000 runs."""

COPY = """\
cd /lustre/scratch/alice/yurt/projects/*/runs || exit
for old in *; do :; done
for n in $(seq 10000 $((9999 + $1))); do
  new=${old%-*}-$n
  cp -a "$old" "$new" && sed -i "s/$old/$new/g" "$new"/run.json "$new"/plan.json || exit
done
"""

COPY_TASKS = """\
cd /lustre/scratch/alice/yurt/projects/*/sweeps/* || exit
for n in $(seq 1 $(($1 - 1))); do cp -a tasks/0 tasks/$n || exit; done
"""


class Both:
    """The CPU seconds of a command here and on the login node."""

    def __init__(self, bench: Bench, node: LoginNode) -> None:
        self._bench, self._node = bench, node

    def of(self, argv: list[str], more: dict[str, str], folder: Path) -> tuple[float, float]:
        here, there = _children(), self._node.cpu_seconds()
        self._bench.call(argv, more=more, folder=folder)
        return _children() - here, self._node.cpu_seconds() - there


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def another_machine(bench: Bench, name: str) -> dict[str, str]:
    """Return the environment of another machine of the user: with an index of its own, and the same lab."""
    data = bench.home / f"data-{name}"
    data.mkdir()
    (data / "lab").symlink_to(bench.home / "data" / "lab")
    more = {"YURT_DATA_HOME": str(data)}
    bench.call([YURT, "context", "probe", "alpha"], more=more)
    return more


def partition(bench: Bench, state: str) -> None:
    bench.call([YURT, "lab", "shell", "alpha:ctl", "--", "scontrol", "update", "PartitionName=main", f"State={state}"])


def last(bench: Bench) -> str:
    from yurt.store import Store

    with Store(f"{bench.home}/data/yurt.db") as store:
        (entry,) = store.newest(1)
    return entry.run.id


def cancelled(bench: Bench, node: LoginNode, source: Path) -> list[Figure]:
    partition(bench, "DOWN")
    sweep = [YURT, "--context", "alpha", "run", "--time", "5m", "--grid", f"seed=1..{TASKS}", "true"]
    bench.call(sweep, folder=source)
    run = last(bench)
    cost = node.measure([YURT, "cancel", *(f"{run}.{number}" for number in range(TASKS))], source)
    bench.call(sweep, folder=source)
    run = last(bench)
    here, there = Both(bench, node).of([YURT, "cancel", *(f"{run}.{n}" for n in range(TASKS))], {}, source)
    names = []
    for _each in range(SINGLE):
        bench.call([YURT, "--context", "alpha", "run", "--time", "5m", "true"], folder=source)
        names.append(last(bench))
    single = node.measure([YURT, "cancel", *names], source)
    partition(bench, "UP")
    return [
        Figure(f"cancel of {TASKS} tasks by name: ssh sessions", cost.sessions, 1),
        Figure("  programs on the login node", cost.programs, 60),
        Figure("  CPU seconds here", here),
        Figure("  CPU seconds on the login node", there),
        Figure("  CPU seconds, both", here + there, 1),
        Figure(f"cancel of {SINGLE} runs: ssh sessions", single.sessions, 1),
        Figure("  programs on the login node, per run", single.programs / SINGLE, 4),
    ]


def runs(bench: Bench, node: LoginNode, source: Path) -> list[Figure]:
    bench.call([YURT, "--context", "alpha", "run", "--time", "5m", "--wait", "true"], folder=source)
    subprocess.run([*bench.ssh, "alice@alpha", "sh", "-s", str(RUNS)], input=COPY, text=True, check=True)
    more, both = another_machine(bench, "runs"), Both(bench, node)
    imported = both.of([YURT, "import", "alpha"], more, source)
    pruned = both.of([YURT, "prune", "--unfetched", "--yes"], more, source)
    return [*_cpu(f"import of {RUNS:,} ended runs", imported), *_cpu(f"prune of {RUNS:,} runs", pruned)]


def tasks(bench: Bench, node: LoginNode, source: Path) -> list[Figure]:
    bench.call([*bench.ssh, "alice@alpha", "rm -rf /lustre/scratch/alice/yurt/projects/*/sweeps"])
    partition(bench, "UP")
    grid = ["--grid", f"seed=1..{RUNS}", "sh", "-c", "echo done"]
    bench.call([YURT, "--context", "alpha", "run", "--time", "5m", "--hold", *grid], folder=source)
    run = last(bench)
    release = "scontrol release $(squeue -h -u alice -o %A | sort -un | head -n 1)_0"
    done = f"until [ -e /lustre/scratch/alice/yurt/projects/*/sweeps/{run}/tasks/0/exit.json ]; do sleep 0.2; done"
    bench.call([*bench.ssh, "alice@alpha", f"{release}; {done}; scancel -u alice"])
    subprocess.run([*bench.ssh, "alice@alpha", "sh", "-s", str(RUNS)], input=COPY_TASKS, text=True, check=True)
    more = another_machine(bench, "tasks")
    return _cpu(f"import of {RUNS:,} ended tasks", Both(bench, node).of([YURT, "import", "alpha"], more, source))


def _cpu(label: str, seconds: tuple[float, float]) -> list[Figure]:
    return [
        Figure(f"{label}: CPU seconds here", seconds[0]),
        Figure("  on the login node", seconds[1]),
        Figure("  both", sum(seconds), BUDGET),
    ]


def main() -> int:
    if os.geteuid() != 0:
        print("many_runs: skipped; the lab needs root")
        return 0
    with alpha() as bench:
        source = project(bench.home / "project", files=20)
        node = LoginNode(bench)
        figures = [*cancelled(bench, node, source), *runs(bench, node, source), *tasks(bench, node, source)]
    return table("verbs over many runs", figures)


if __name__ == "__main__":
    sys.exit(main())
