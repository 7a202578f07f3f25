"""Writes runs to an MLflow store in processes that are killed at random points; run as a program by the tests.

The store is one of plain files, which keeps a value twice if it is written twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from yurt.model.run import Run, Status
from yurt.store import Entry
from yurt.tracking.followed import Copy
from yurt.tracking.mlflow import journal, wanted
from yurt.tracking.mlflow import update as merge_module
from yurt.tracking.mlflow.place import Place
from yurt.tracking.mlflow.update import Merger

OWN = "0123456789abcdef0123456789abcdef"
NESTED = "f" * 32

META = """\
run_id: {id}
run_name: mine
start_time: {start}
end_time: null
status: 1
lifecycle_stage: active
"""


class Site:
    """The copies of a sweep with two tasks, whose files grow. The script of the first one uses MLflow itself."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.step = 0
        self.state = "running"
        self.expected: Counter[tuple[str, str, int, float]] = Counter()
        """MLflow run, metric, step, value."""
        for start, each in enumerate((OWN, NESTED)):
            self.write(f"0/outputs/mlruns/0/{each}/meta.yaml", META.format(id=each, start=1000 + start))
        self.write(f"0/outputs/mlruns/0/{NESTED}/tags/mlflow.parentRunId", OWN)
        self.write(f"0/outputs/mlruns/0/{OWN}/params/depth", "3")

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as stream:
            stream.write(text)

    def grow(self, lines: int) -> None:
        rows: dict[str, list[str]] = {}
        for _line in range(lines):
            self.step += 1
            value, at = self.chance.random(), self.step
            for task in (0, 1):
                row = {"time": 1000.0 + at, "step": at, "loss": value, "acc": -value}
                rows.setdefault(f"{task}/metrics.jsonl", []).append(json.dumps(row))
                self.expected[f"s.{task}", "loss", at, value] += 1
                self.expected[f"s.{task}", "acc", at, -value] += 1
            for run, key in ((OWN, "s.0"), (NESTED, f"s.0#{NESTED}")):
                rows.setdefault(f"0/outputs/mlruns/0/{run}/metrics/val", []).append(f"{2000 + at} {value} {at}")
                self.expected[key, "val", at, value] += 1
        for path, texts in rows.items():
            self.write(path, "\n".join(texts) + "\n")

    def wanted(self) -> list[wanted.Wanted]:
        run = Run(
            id="s",
            context="alpha",
            context_type="slurm",
            project="demo-ab12",
            source="/x",
            created=1.0,
            command=["train.py"],
            folder="/x",
            tasks=2,
        )
        status = Status(state=self.state, started=2.0, ended=9.0 if self.state == "completed" else None)  # type: ignore[arg-type]
        found = list(wanted.of(Entry(run, status), {}))
        for task in (0, 1):
            base = self.folder / str(task)
            files = [each for each in base.rglob("*") if each.is_file()]
            copies = {
                str(each.relative_to(base)): Copy(str(each.relative_to(base)), each, each.stat().st_size, 0)
                for each in files
            }
            one = msgspec.structs.replace(run, id=f"s.{task}", sweep="s", task=task, tasks=0, params={"lr": task})
            found += wanted.of(Entry(one, status), copies)
        return found


class Killer:
    """Kills this process before or after an operation."""

    def __init__(self, after: int) -> None:
        self.left = after

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*words: Any, **more: Any) -> Any:
            self.count()
            done = real(*words, **more)
            self.count()
            return done

        setattr(owner, name, call)


def merge(uri: str, site: Site, killer: Killer | None) -> None:
    place = Place(uri)
    if killer is not None:
        from mlflow.store.tracking.file_store import FileStore

        for name in ("log_batch", "create_run", "update_run", "set_terminated", "create_experiment"):
            killer.watch(place.client, name)
        killer.watch(journal.Journal, "put")
        if killer.left % 3 == 0:  # inside of a request
            killer.watch(FileStore, "_log_run_metric")
            killer.left *= 4
    with journal.opened(uri) as opened:
        merger = Merger(place, opened)
        for each in site.wanted():
            merger.merge(each, complete=False)


def found(uri: str) -> dict[str, Any]:
    """Return what the store has."""
    client = Place(uri).client
    values: Counter[tuple[str, str, int, float]] = Counter()
    runs = []
    for experiment in client.search_experiments():
        for run in client.search_runs([experiment.experiment_id]):
            key = run.data.tags["yurt.run"] + (f"#{logged}" if (logged := run.data.tags.get("yurt.logged")) else "")
            runs.append((key, run.info.status, run.data.params))
            for metric in run.data.metrics:
                for each in client.get_metric_history(run.info.run_id, metric):
                    values[key, metric, each.step, each.value] += 1
    return {"runs": sorted(runs, key=lambda each: str(each[0])), "values": values}


def main(folder: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)
    merge_module.BATCH = 25  # several batches without many points
    uri = (folder / "store").as_uri()
    site = Site(folder / "copies", chance)
    import mlflow.store.tracking.file_store  # noqa: F401

    killed = 0
    for number in range(kills):
        site.grow(chance.choice((0, 1, 3, 20)))
        pid = os.fork()
        if pid == 0:
            try:
                merge(uri, site, Killer(chance.randint(1, 24)))
            finally:
                os._exit(0)
        _pid, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status)
        if number == kills // 2:
            merge(uri, site, None)
    site.state = "completed"
    merge(uri, site, None)
    merge(uri, site, None)
    there = found(uri)
    print(
        json.dumps(
            {
                "killed": killed,
                "points": sum(site.expected.values()),
                "missing": len(site.expected - there["values"]),
                "twice": len(there["values"] - site.expected),
                "runs": there["runs"],
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
