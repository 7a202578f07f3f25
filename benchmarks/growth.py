"""Growth: what verbs cost with an index of 100,000 runs and a sweep of 100,000 sets, compared with one run and one set.

What a verb prints of everything, such as `ps --all`, may grow; what it does for one run may not.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.counts import peak_kib
from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import YURT, Bench

if TYPE_CHECKING:
    from yurt.store import Found

MANY = 100_000
GROWTH, MEMORY = 1.2, 200
BATCH = 5000
SOME = 2_000
"""Sets of the smaller of two sweeps whose instructions are counted, which takes fifty times as long as the command."""
NAMED = "the-named-run"

ALL_RUNS = {
    "ps": ["ps"],
    "ps --cached --json": ["ps", "--cached", "--json"],
    "ps of a context": ["ps", "--context", "old"],
    "show RUN": ["show", NAMED],
    "show of the last run": ["show", "@last"],
    "logs RUN": ["logs", NAMED],
    "run --dry-run": ["--context", "here", "run", "--dry-run", "train.py"],
    "run, local": ["--context", "here", "run", "train.py"],
}
MEASURED = ("ps", "show RUN", "run, local", "show of a task")


def entries(count: int, now: float) -> Iterator[Found]:
    """Yield records of runs as after years of work."""
    from yurt.model import ids
    from yurt.model.run import Chosen, Code, Run, Status
    from yurt.store import Found

    for number in range(count):
        created = now - 86400 - 60 * (count - number)
        run_id = ids.make(created, number * 7919 % 32**5)
        run = Run(
            id=run_id,
            context="old",
            context_type="local",
            project=f"bench-{number % 40:04}",
            source="/home/me/bench",
            created=created,
            name=NAMED if number == count - 1 else "" if number % 3 else f"name-{number // 100}",
            command=["train.py", "--lr", "0.1", "--seed", str(number)],
            folder=f"/nowhere/yurt/projects/bench-0000/runs/{run_id}",
            params={"lr": 0.1, "seed": number},
            code=Code(tree="0" * 40, files=2000, size=20_000_000, commit="0" * 40, branch="main"),
            settings=[Chosen(key, "value", "contexts.yaml:3") for key in ("time", "partition", "storage_dir")],
        )
        status = Status(
            state="completed", job=str(number), attempts=1, started=created, ended=created + 50, submitted=created
        )
        yield Found(run, status, None)


def fill(file: str, count: int) -> None:
    """Add finished runs whose logs are saved, as import does."""
    from yurt.store import Mirrored, Store

    now = time.time()
    kept = Mirrored(at=now, out=b"done\n", out_size=5)
    with Store(file) as store:
        for batch in _batches(entries(count, now)):
            store.add_found(batch)
            store.keep({each.run.id: kept for each in batch})


def _batches(found: Iterator[Found]) -> Iterator[list[Found]]:
    while batch := list(itertools.islice(found, BATCH)):
        yield batch


def add_sweep(index: Index, size: int) -> str:
    """Add a finished sweep of so many sets, made from a real one of one set; return its id."""
    from yurt.model import ids
    from yurt.model.run import Status
    from yurt.store import Found, Mirrored, Store

    index.bench.call([YURT, "--context", "here", "run", "--grid", "seed=0", "--wait", "train.py"], folder=index.project)
    with Store(index.file) as store:
        entry = store.last(sweep=True)
        plan = store.plan(entry.run.id) if entry is not None else None
        assert entry is not None and plan is not None
        now = time.time()
        sweep = ids.make_sweep(now + 5, 7)
        run = msgspec.structs.replace(entry.run, id=sweep, tasks=size, context="old", name="swept", folder="/nowhere/s")
        plan = msgspec.structs.replace(plan, run=run, sets=[{"seed": number} for number in range(size)])
        done = Status(state="completed", attempts=1, started=now, ended=now, submitted=now, exit_code=0)
        whole = msgspec.structs.replace(entry.status, submitted_tasks=f"0-{size - 1}")
        store.add_found([Found(run, whole, plan, dict.fromkeys(range(size), done))])
        kept = Mirrored(at=now, out=b"done\n", out_size=5)
        store.keep({sweep: kept, **{ids.task(sweep, number): kept for number in range(size)}})
    return sweep


class Index:
    """A machine of the user with so many runs in its index."""

    def __init__(self, home: Path, count: int) -> None:
        home.mkdir()
        self.count = count
        self.bench = Bench(home)
        self.project = home / "project"
        self.project.mkdir()
        (self.project / "train.py").write_text("print('done')\n")
        (home / "config").mkdir()
        (home / "config" / "contexts.yaml").write_text(
            "contexts:\n  here:\n    type: local\n  old:\n    type: local\n"
            f"    storage_dir: {home}/old\n  site:\n    type: slurm\n    slurm_url: me@nowhere.invalid\n"
        )
        self.file = f"{home}/data/yurt.db"
        self.bench.call([YURT, "ps"])
        fill(self.file, count)

    def environment(self) -> dict[str, str]:
        return {**self.bench.environment, "PWD": str(self.project)}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="yb-") as folder:
        few, many = Index(Path(folder) / "few", 1), Index(Path(folder) / "many", MANY)
        figures = measure(few, many)
    return table(f"an index of {MANY:,} runs, a sweep of {MANY:,} sets", figures, "x one run")


def measure(few: Index, many: Index) -> list[Figure]:
    figures = growth(few, many, ALL_RUNS)
    sweeps = [(each, add_sweep(each, each.count)) for each in (few, many)]
    with_sweep = {"after the sweep: ps": ["ps"], "  run, local": ALL_RUNS["run, local"]}
    figures += growth(few, many, with_sweep)
    counts = [_instructions(each, ["show", f"{sweep}.0"]) for each, sweep in sweeps]
    figures.append(Figure("  show of a task", counts[1] / counts[0], GROWTH))
    middle = _instructions(many, ["show", f"{sweeps[1][1]}.{MANY // 2}"])
    figures.append(Figure("  show of a task in the middle", middle / counts[0], GROWTH))
    for label, words in (*ALL_RUNS.items(), ("show of a task", ["show", f"{sweeps[1][1]}.{MANY - 1}"])):
        if label in MEASURED:
            figures.append(Figure(f"peak memory of {label}, MiB", _memory(many, words), MEMORY))
    dry = ["--context", "here", "run", "--dry-run", "--grid"]
    figures.append(
        Figure(f"  run --dry-run of {MANY:,} sets", _memory(few, [*dry, f"seed=1..{MANY}", "train.py"]), MEMORY)
    )
    one, some, all_ = (_instructions(few, [*dry, f"seed=1..{n}", "train.py"]) for n in (1, SOME, 10 * SOME))
    each = ((all_ - one) / (10 * SOME - 1)) / ((some - one) / (SOME - 1))
    figures.append(Figure(f"instructions for each of {10 * SOME:,} sets, x {SOME:,}", each, GROWTH))
    return figures


def growth(few: Index, many: Index, verbs: dict[str, list[str]]) -> list[Figure]:
    """Return the instructions of verbs with many runs, compared with few."""
    counts = {label: (_instructions(few, words), _instructions(many, words)) for label, words in verbs.items()}
    return [Figure(label, after / before, GROWTH) for label, (before, after) in counts.items()]


def _instructions(index: Index, words: list[str]) -> int:
    before = Path.cwd()
    os.chdir(index.project)
    try:
        return instructions([YURT, *words], index.environment())
    finally:
        os.chdir(before)


def _memory(index: Index, words: list[str]) -> float:
    return peak_kib(index.bench, [YURT, *words], index.project) / 1024


if __name__ == "__main__":
    sys.exit(main())
