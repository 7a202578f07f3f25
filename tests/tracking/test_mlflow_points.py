"""Points for MLflow from event files, of scripts that log in no other way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tracking import events
from yurt.model.run import Run, Status
from yurt.store import Entry
from yurt.tracking.followed import Copy
from yurt.tracking.mlflow import points, script_runs, wanted
from yurt.tracking.mlflow.points import Source

RUN = Run(
    id="1nfaaa0-aaaa0",
    context="alpha",
    context_type="slurm",
    project="p-1",
    source="/p",
    created=1.0,
    command=["train.py"],
    folder="/r",
)


def copy(folder: Path, path: str, content: bytes) -> Copy:
    file = folder / path.replace("/", "_")
    file.write_bytes(content)
    return Copy(path, file, len(content), 0)


def sources(*copies: Copy) -> dict[str, Source]:
    entry = Entry(RUN, Status(state="running", started=2.0))
    (found,) = wanted.of(entry, {each.path: each for each in copies})
    return {each.path: each for each in found.sources}


def test_half_a_record_waits(tmp_path: Path) -> None:
    path = "work/runs/x/events.out.tfevents.1.node"
    whole = events.begin() + events.scalars(1, 2)
    made = copy(tmp_path, path, whole[:-5])
    ((first, position),) = points.read(sources(made)[path], None)
    assert [(each.metric, each.value, each.step) for each in first] == [("loss", 1.0, 0)]
    made = copy(tmp_path, path, whole)
    ((second, position),) = points.read(sources(made)[path], position)
    assert [(each.value, each.step) for each in second] == [(2.0, 1)]
    assert list(points.read(sources(made)[path], position)) == []


def test_folders_are_part_of_the_names_only_if_there_are_several(tmp_path: Path) -> None:
    one = copy(tmp_path, "work/logs/train/events.out.tfevents.1.node", events.begin() + events.scalars(1))
    two = copy(tmp_path, "work/logs/validation/events.out.tfevents.1.node", events.begin() + events.scalars(2))
    assert [each.events for each in sources(one).values()] == [""]
    found = sources(one, two)
    read = [points.read(each, None) for each in found.values()]
    assert [part[0].metric for each in read for part, _position in each] == ["train/loss", "validation/loss"]


def test_a_script_that_logs_with_yurt_as_well(tmp_path: Path) -> None:
    """The same metric would be there twice."""
    event = copy(tmp_path, "work/events.out.tfevents.1.node", events.begin() + events.scalars(1))
    logged = copy(tmp_path, "metrics.jsonl", b'{"time":1.0,"loss":2}\n')
    assert list(sources(event, logged)) == ["metrics.jsonl"]


@pytest.mark.parametrize("name", ["[" * 5000, "&a [*a]", "{a: b}"])
def test_a_name_of_a_script_that_is_no_text(name: str, tmp_path: Path) -> None:
    """A run writes meta.yaml: it was an internal error, or a name without an end."""
    path = f"outputs/mlruns/0/{'a' * 32}/meta.yaml"
    made = copy(tmp_path, path, f"start_time: 1\nstatus: 3\nrun_name: {name}\n".encode())
    found = script_runs.read({path: made})
    assert [each.name for each in found] in ([], [""])
