"""Adds the results of runs to MLflow as artifacts, on demand: they are fetched first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from yurt.lifecycle.fetch import fetch_runs
from yurt.lifecycle.files.transfer import Wanted
from yurt.model import ids, layout
from yurt.model.growth import MLRUNS
from yurt.model.progress import Event, Watch
from yurt.store import Entry, Store
from yurt.tracking.mlflow import journal
from yurt.tracking.mlflow.failures import explained
from yurt.tracking.mlflow.place import Place


def add(store: Store, target: Place, entries: Sequence[Entry], *, watch: Watch) -> tuple[int, list[str]]:
    """Fetch the results of runs and started tasks, and add them to their MLflow runs. Return how many, and problems."""
    started: list[Entry] = []
    for entry in entries:
        names = [ids.task(entry.run.id, number) for number in range(entry.run.tasks)] or [entry.run.id]
        started += [each for each in store.several(names) if each.status.started]
    folder = journal.folder() / "outputs"
    found = fetch_runs(store, started, Wanted(folder=folder, several=True), watch=watch)
    count = 0
    with journal.opened(target.uri) as opened, explained(target.uri):
        for number, each in enumerate(found.done):
            watch(Event("adding artifacts to MLflow", number, len(found.done)))
            if each.target and (run := opened.get(each.id).mlflow):
                count += _add_one(target, opened, each.id, run, folder / each.id)
    return count, [error.message for error in found.errors]


def _add_one(target: Place, opened: journal.Journal, run: str, main: str, folder: Path) -> int:
    """Add the results of a run, and what its script logged as artifacts to its own MLflow runs."""
    count = 0
    real = os.path.realpath(folder)
    for file in sorted(each for each in folder.rglob("*") if each.is_file()):
        if not os.path.realpath(file).startswith(f"{real}/"):
            continue  # a link to a file of this machine
        path = file.relative_to(folder)
        owner, below = main, path.parent
        parts = path.parts[1:] if path.parts[0] == layout.OUTPUTS else path.parts
        if parts[0] == MLRUNS:
            if len(parts) < 5 or parts[3] != "artifacts":
                continue
            owner = opened.get(f"{run}#{parts[2]}").mlflow or main
            below = Path(*parts[4:-1])
        target.client.log_artifact(owner, str(file), None if below == Path() else below.as_posix())
        count += 1
    return count
