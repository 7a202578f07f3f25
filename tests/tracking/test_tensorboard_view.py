"""What TensorBoard sees: names, links, replaced files, and metrics that are turned into event files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tracking import events
from yurt.model.run import Plan, Run, Status
from yurt.store import Entry, Store
from yurt.tracking.followed import folder
from yurt.tracking.tensorboard import labels
from yurt.tracking.tensorboard.view import HPARAMS_FILE, METRICS_FILE, Converted, View, write_hparams

RUN, OTHER, SWEEP = "1nfaaa0-aaaa0", "1nfaaa1-bbbb1", "s1nfaaa2-cccc2"
EVENTS = "events.out.tfevents.1794940000.host"


def a_run(run: str = RUN, **more: Any) -> Run:
    given = {"id": run, "context": "local", "context_type": "local", "project": "p", "source": "/p", "created": 5.0}
    return Run(**{**given, "command": ["python", "src/train.py", "--lr", "0.1"], "folder": f"/d/{run}", **more})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    with Store(f"{tmp_path}/data/yurt.db") as made:
        yield made


def put(run: str, path: str, content: bytes, generation: int = 0) -> Path:
    """Append to the copy of a file."""
    file = folder(run) / str(generation) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(content)
    return file


class Shown:
    """A view of runs."""

    def __init__(
        self, tmp_path: Path, store: Store, *runs: Run, logdir: str = "", **sets: list[dict[str, Any]]
    ) -> None:
        for run in runs:
            if not run.sweep and store.get(run.id) is None:
                plan = Plan(run=run, project_folder="/d", store="", words=[], sets=sets.get("sets", []))
                store.add(run, Status(state="running"), plan)
        entries = [store.get(run.id) or Entry(run, Status()) for run in runs]
        self.view = View(tmp_path / "view", store, entries, logdir=logdir)

    def names(self) -> list[str]:
        """Return the folders with event files that are not only hyperparameters, after an update."""
        self.view.update()
        found = {file.parent for file in self.view.folder.rglob("*tfevents*") if file.name != HPARAMS_FILE}
        names = sorted(each.relative_to(self.view.folder).as_posix() for each in found)
        assert names == sorted(name for each in self.view.shown().values() for name in each)
        return names

    def read(self, name: str) -> dict[str, list[tuple[int, float]]]:
        return read(self.view.folder / name)


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Return the scalars in a folder as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


FOLDERS = {
    "work/runs/Nov17_12-00-00_host": "",
    "work/runs": "",
    "work": "",
    "work/runs/Nov17_12-00-00_host/train": "train",
    "work/runs/mine": "mine",
    "work/runs/a/runs/b": "a/b",
    "outputs/lightning_logs/version_0": "",
    "outputs/tb_logs/my_model/version_0": "my_model",
    "work/multirun/2026-11-17/12-00-00/0/logs": "0",
    "work/outputs/2026-11-17/12-00-00": "outputs",
    "outputs/2026-11-17/12-00-00": "",
    "place/logs/validation": "validation",
    "work/logs/.hidden": "_.hidden",
}


@pytest.mark.parametrize("path", FOLDERS)
def test_folders_are_named_by_what_says_something(path: str) -> None:
    assert labels.of_folder(path, {path}) == FOLDERS[path]


def test_versions_are_named_if_there_are_several() -> None:
    several = {f"outputs/lightning_logs/version_{number}" for number in range(2)}
    assert [labels.of_folder(each, several) for each in sorted(several)] == ["version_0", "version_1"]


def test_runs_are_named_by_their_names() -> None:
    runs = [a_run(), a_run(OTHER, name="base/line"), a_run(SWEEP, name="grid", tasks=2)]
    assert labels.of_runs(runs) == {RUN: "train.py aaaa0", OTHER: "base_line", SWEEP: "grid"}
    alike = [a_run(name="same"), a_run(OTHER, name="same", context="alpha"), a_run(SWEEP, command=["./go"])]
    assert labels.of_runs(alike) == {RUN: "same aaaa0", OTHER: "same bbbb1", SWEEP: "go cccc2"}
    for hostile in ("../up", "..", "a\nb", "x" * 500, "é" * 300, " ", "a\\b"):
        name = labels.of_runs([a_run(name=hostile)])[RUN]
        assert "/" not in name and not name.startswith(".") and name.isprintable() and len(name.encode()) < 200


def test_tasks_are_named_by_the_parameters_that_vary() -> None:
    sets: list[dict[str, Any]] = [{"lr": 0.1, "seed": 3, "size": 4}, {"lr": 0.2, "seed": 3, "size": 4}]
    assert labels.of_tasks(sets) == ["lr=0.1", "lr=0.2"]
    assert labels.of_tasks([*sets, {"lr": 0.1, "seed": 4, "size": 4}]) == [
        "lr=0.1,seed=3",
        "lr=0.2,seed=3",
        "lr=0.1,seed=4",
    ]
    assert labels.of_tasks([{"a": "x/y"}, {"a": None}, {"a": [1, 2]}]) == ["a=x_y", "a=null", "a=[1,2]"]
    assert labels.of_tasks([{"a": 1}, {"a": 1}]) == ["0", "1"]
    assert labels.of_tasks([{"a": 1}, {"a": 1}, {"a": 2}]) == ["a=1 #0", "a=1 #1", "a=2"]
    assert labels.of_tasks([{}, {}]) == ["0", "1"]
    assert labels.of_tasks([]) == []
    long = labels.of_tasks([{f"key{number}": f"{'v' * 50}{task}" for number in range(20)} for task in range(3)])
    assert len(set(long)) == 3 and all(len(each.encode()) < 200 for each in long)


def test_patterns() -> None:
    assert labels.matches("work/runs/a/train", "runs/*")
    assert labels.matches("work/runs/a/train", "runs")
    assert labels.matches("outputs/lightning_logs/version_0", "lightning_logs/version_*")
    assert labels.matches("work/runs/a/train", "*/train")
    assert labels.matches("work", ".")
    assert not labels.matches("work/runs/a/train", "logs/*")
    assert not labels.matches("work/runs/a/train", "train")


def test_runs_and_tasks_side_by_side(tmp_path: Path, store: Store) -> None:
    sets = [{"lr": 0.1}, {"lr": 0.2}]
    put(RUN, f"work/runs/Nov17_12-00-00_host/{EVENTS}", events.begin() + events.scalars(1, 2))
    put(SWEEP, f"tasks/0/work/runs/{EVENTS}", events.begin() + events.scalars(3))
    put(SWEEP, "tasks/1/metrics.jsonl", b'{"time":7.5,"step":2,"loss":4}\n')
    shown = Shown(tmp_path, store, a_run(), a_run(SWEEP, name="grid", tasks=2), sets=sets)
    assert shown.names() == ["grid/lr=0.1", "grid/lr=0.2", "train.py aaaa0"]
    assert shown.read("grid/lr=0.2") == {"loss": [(2, 4.0)]}
    assert shown.read("train.py aaaa0") == {"loss": [(0, 1.0), (1, 2.0)]}
    put(SWEEP, f"tasks/0/work/runs/{EVENTS}", events.scalars(5, first=1))
    put(SWEEP, "tasks/1/metrics.jsonl", b'{"time":8,"step":3,"loss":"NaN"}\n{"time":9,"st')
    assert shown.names() == ["grid/lr=0.1", "grid/lr=0.2", "train.py aaaa0"]
    assert shown.read("grid/lr=0.1") == {"loss": [(0, 3.0), (1, 5.0)]}
    (_first, (step, value)) = shown.read("grid/lr=0.2")["loss"]
    assert step == 3 and math.isnan(value)


def test_only_the_chosen_tasks(tmp_path: Path, store: Store) -> None:
    for task in range(3):
        put(SWEEP, f"tasks/{task}/work/{EVENTS}", events.begin())
    whole = a_run(SWEEP, name="grid", tasks=3)
    store.add(whole, Status(), Plan(run=whole, project_folder="/d", store="", words=[], sets=[{"n": n} for n in "abc"]))
    shown = Shown(tmp_path, store, a_run(f"{SWEEP}.1", sweep=SWEEP, task=1, name="grid"))
    assert shown.names() == ["grid/n=b"]


def test_several_folders_of_a_run(tmp_path: Path, store: Store) -> None:
    for name in ("train", "validation"):
        put(RUN, f"work/logs/{name}/{EVENTS}", events.begin() + events.scalars(1))
    shown = Shown(tmp_path, store, a_run(name="one", params={"lr": 0.1}))
    assert shown.names() == ["one/train", "one/validation"]
    assert (shown.view.folder / "one" / HPARAMS_FILE).exists()
    put(RUN, f"outputs/lightning_logs/version_0/{EVENTS}", events.begin())
    assert shown.names() == ["one", "one/train", "one/validation"]
    put(RUN, f"outputs/lightning_logs/version_1/{EVENTS}", events.begin())
    put(RUN, f"work/runs/Nov17_12-00-00_host/{EVENTS}", events.begin())
    put(RUN, f"outputs/train/{EVENTS}", events.begin())
    taken = ["one", "one/outputs/train", "one/runs/Nov17_12-00-00_host", "one/train", "one/validation", "one/version_1"]
    assert shown.names() == taken


def test_hyperparameters_of_a_run_with_one_folder_make_no_other_run(tmp_path: Path, store: Store) -> None:
    put(RUN, f"work/logs/train/{EVENTS}", events.begin())
    shown = Shown(tmp_path, store, a_run(name="one", params={"lr": 0.1}))
    assert shown.names() == ["one/train"]
    assert not (shown.view.folder / "one" / HPARAMS_FILE).exists()
    assert (shown.view.folder / "one/train" / HPARAMS_FILE).exists()


def test_a_pattern_selects_folders(tmp_path: Path, store: Store) -> None:
    for name in ("train", "validation"):
        put(RUN, f"work/logs/{name}/{EVENTS}", events.begin())
    put(OTHER, "metrics.jsonl", b'{"time":1,"loss":1}\n')
    shown = Shown(tmp_path, store, a_run(name="one"), a_run(OTHER), logdir="logs/t*")
    assert shown.names() == ["one/train"]


def test_a_replaced_file_becomes_a_new_run(tmp_path: Path, store: Store) -> None:
    old = put(RUN, f"work/runs/a/{EVENTS}", events.begin() + events.scalars(1, 2))
    put(RUN, f"work/runs/b/{EVENTS}", events.begin() + events.scalars(7))
    shown = Shown(tmp_path, store, a_run(name="one"))
    assert shown.names() == ["one/a", "one/b"]
    old.unlink()
    put(RUN, f"work/runs/a/{EVENTS}", events.begin() + events.scalars(9), generation=1)
    assert shown.names() == ["one (2)/a", "one (2)/b"]
    assert not (shown.view.folder / "one").exists()
    assert shown.read("one (2)/a") == {"loss": [(0, 9.0)]} and shown.read("one (2)/b") == {"loss": [(0, 7.0)]}
    put(RUN, f"work/runs/a/{EVENTS}", events.scalars(10, first=1), generation=1)
    assert shown.names() == ["one (2)/a", "one (2)/b"]


def test_a_generation_before_the_first_look_is_not_counted(tmp_path: Path, store: Store) -> None:
    put(RUN, f"work/runs/{EVENTS}", events.begin(), generation=3)
    assert Shown(tmp_path, store, a_run(name="one")).names() == ["one"]


def test_replaced_metrics_and_late_event_files(tmp_path: Path, store: Store) -> None:
    old = put(RUN, "metrics.jsonl", b'{"time":1,"loss":1}\n{"time":2,"loss":2}\n')
    shown = Shown(tmp_path, store, a_run(name="one"))
    assert shown.names() == ["one"] and shown.read("one") == {"loss": [(0, 1.0), (1, 2.0)]}
    old.unlink()
    put(RUN, "metrics.jsonl", b'{"time":1,"loss":3}\n', generation=1)
    assert shown.names() == ["one (2)"] and shown.read("one (2)") == {"loss": [(0, 3.0)]}
    put(RUN, f"work/{EVENTS}", events.begin() + events.scalars(4))
    assert shown.names() == ["one (3)"] and shown.read("one (3)") == {"loss": [(0, 4.0)]}


def test_files_that_all_tasks_wrote_into_one_folder(tmp_path: Path, store: Store) -> None:
    put(SWEEP, f"place/runs/{EVENTS}", events.begin())
    put(SWEEP, "tasks/0/metrics.jsonl", b'{"time":1,"loss":1}\n')
    shown = Shown(tmp_path, store, a_run(SWEEP, name="grid", tasks=2), sets=[{"lr": 1}, {"lr": 2}])
    assert shown.names() == ["grid/all tasks", "grid/lr=1"]


def test_a_run_of_another_machine_has_numbers(tmp_path: Path, store: Store) -> None:
    put(SWEEP, "tasks/1/metrics.jsonl", b'{"time":1,"loss":1}\n')
    store.add(a_run(SWEEP, tasks=2), Status())
    shown = Shown(tmp_path, store, a_run(SWEEP, tasks=2))
    assert shown.names() == ["train.py cccc2/1"]


LINES = b"""\
{"time":10.5,"step":0,"loss":1,"text":"x","list":[1],"flag":true,"none":null,"nested":{"a":1}}
{"time":11,"step":1,"rank":3,"loss":100}
{"time":11,"step":1,"loss":"Infinity","low":"-Infinity","word":"1"}
not json
[1, 2]
{"time":12,"loss":3}
{"time":13,"step":2.9,"loss":4}
{"time":14,"step":"x","loss":5}
{"time":15,"step":99999999999999999999999,"loss":6}
{"time":16,"step":9007199254740993,"loss":7}
{"time":"NaN","step":8,"loss":8}
{"step":9}
{"step":10,"loss":1e400}
"""


def test_metrics_are_converted(tmp_path: Path) -> None:
    source = tmp_path / "metrics.jsonl"
    source.write_bytes(LINES)
    Converted(tmp_path / METRICS_FILE).follow(source)
    found = read(tmp_path)
    assert set(found) == {"loss", "flag", "low"}
    steps = [0, 1, 2, 2, 4, 2**63 - 1, 9007199254740993, 8]
    assert [step for step, _value in found["loss"]][:8] == steps
    assert [value for _step, value in found["loss"]][:8] == [1, math.inf, 3, 4, 5, 6, 7, 8]


def test_lines_are_converted_once_they_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yurt.tracking.tensorboard.view.PIECE", 7)
    source = tmp_path / "metrics.jsonl"
    made = Converted(tmp_path / METRICS_FILE)
    whole = b"".join(b'{"time":%d,"step":%d,"loss":%d}\n' % (at, at, at) for at in range(10))
    for end in range(0, len(whole) + 1, 11):
        source.write_bytes(whole[:end])
        made.follow(source)
    source.write_bytes(whole)
    made.follow(source)
    made.follow(source)
    assert read(tmp_path) == {"loss": [(at, float(at)) for at in range(10)]}


def test_hyperparameters_have_types(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    given = {"lr": "0.1", "n": 3, "fast": True, "name": "adam", "list": [1, 2], "no": None, "big": 10**400}
    write_hparams(tmp_path / HPARAMS_FILE, given, trial=RUN, started=5.0)
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    content = found.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    told = metadata.parse_session_start_info_plugin_data(content)
    assert told.group_name and told.start_time_secs == 5.0
    values = {key: getattr(value, str(value.WhichOneof("kind"))) for key, value in told.hparams.items()}
    assert values["lr"] == 0.1 and values["n"] == 3 and values["fast"] is True and values["name"] == "adam"
    assert values["list"] == "[1,2]" and values["no"] == "null"
