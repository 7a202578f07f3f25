"""Growth: what verbs cost with an index of 100,000 runs and a sweep of 100,000 sets, compared with one run and one set.

What a verb prints of everything, such as `ps --all`, may grow; what it does for one run may not.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.counts import peak_kib
from benchmarks.figures import Figure, table
from benchmarks.instructions import instructions
from benchmarks.side_by_side import YURT, Bench

MANY = 100_000
GROWTH, MEMORY = 1.2, 200
BATCH = 5000
NAMED = "the-named-run"


def entries(count: int, now: float) -> Iterator[tuple[str, object]]:
    """Yield the ids and records of runs as after years of work."""
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
        yield run_id, Found(run, status, None)


def fill(file: Path, count: int) -> None:
    """Add finished runs whose logs are saved, as import does."""
    from yurt.store import Mirrored, Store

    now = time.time()
    with Store(str(file)) as store:
        batch: list[tuple[str, object]] = []
        for each in entries(count, now):
            batch.append(each)
            if len(batch) == BATCH:
                _add(store, batch, Mirrored(at=now, out=b"done\n", out_size=5))
                batch = []
        _add(store, batch, Mirrored(at=now, out=b"done\n", out_size=5))


def _add(store: object, batch: list[tuple[str, object]], kept: object) -> None:
    store.add_found([found for _run, found in batch])  # type: ignore[attr-defined]
    store.keep({run: kept for run, _found in batch})  # type: ignore[attr-defined]


def finish_sweep(file: Path) -> str:
    """Record all tasks of the newest sweep as completed, with their logs saved; return the sweep."""
    from yurt.model import ids
    from yurt.model.run import Status
    from yurt.store import Mirrored, Store

    with Store(str(file)) as store:
        entry = store.last(sweep=True)
        assert entry is not None
        now, size = time.time(), entry.run.tasks
        done = Status(state="completed", job="1", attempts=1, started=now, ended=now, submitted=now, exit_code=0)
        store.change_tasks(
            entry.run.id,
            range(size),
            lambda _number, _status: done,
            lambda status: status.__class__(submitted_tasks=f"0-{size - 1}", attempts=1, submitted=now),
        )
        kept = Mirrored(at=now, out=b"done\n", out_size=5)
        store.keep({entry.run.id: kept, **{ids.task(entry.run.id, number): kept for number in range(size)}})
    return entry.run.id


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
        self.bench.call([YURT, "ps"])
        fill(home / "data" / "yurt.db", count)

    def environment(self) -> dict[str, str]:
        return {**self.bench.environment, "PWD": str(self.project)}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="yb-") as folder:
        few, many = Index(Path(folder) / "few", 1), Index(Path(folder) / "many", MANY)
        figures = measure(few, many)
    return table(f"an index of {MANY:,} runs, a sweep of {MANY:,} sets", figures, "x one run")


def measure(few: Index, many: Index) -> list[Figure]:
    grid = "--grid", "seed=1..{}"
    verbs = {
        "ps": ["ps"],
        "ps --cached --json": ["ps", "--cached", "--json"],
        "ps of a context": ["ps", "--context", "old"],
        "show RUN": ["show", NAMED],
        "show of the last run": ["show", "@last"],
        "logs RUN": ["logs", NAMED],
        "run --dry-run": ["--context", "here", "run", "--dry-run", "train.py"],
        "run, local": ["--context", "here", "run", "train.py"],
    }
    figures = []
    for label, words in verbs.items():
        counts = [_instructions(each, words) for each in (few, many)]
        figures.append(Figure(label, counts[1] / counts[0], GROWTH))
    for label, words in (("ps", ["ps"]), ("show RUN", ["show", NAMED]), ("run", verbs["run, local"])):
        figures.append(Figure(f"  peak memory of {label}, MiB", _memory(many, words), MEMORY))
    for each, sets in ((few, 1), (many, MANY)):
        words = ["--context", "here", "run", "--hold", grid[0], grid[1].format(sets), "train.py"]
        del words
        _ = each
    return figures


def _instructions(index: Index, words: list[str]) -> int:
    before = os.getcwd()
    os.chdir(index.project)
    try:
        return instructions([YURT, *words], index.environment())
    finally:
        os.chdir(before)


def _memory(index: Index, words: list[str]) -> float:
    return peak_kib(index.bench, [YURT, *words], index.project) / 1024


if __name__ == "__main__":
    sys.exit(main())
