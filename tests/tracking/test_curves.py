"""Curves of runs from the copies of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.model.test_event_file import simple, written
from tests.user import User
from yurt.model import metric_rows
from yurt.model.run import Run, Status
from yurt.store import Entry
from yurt.tracking import curves
from yurt.tracking.followed import Followed

RUN, SWEEP = "1nfaaa1-aaaa1", "s1nfaaa2-aaaa2"


@pytest.fixture(autouse=True)
def data_home(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_DATA_HOME", user.environment["YURT_DATA_HOME"])


def entry(run: str, tasks: int = 0) -> Entry:
    sweep, dot, number = run.partition(".")
    made = Run(
        id=run,
        context="local",
        context_type="local",
        project="p-0000",
        source="/p",
        created=1,
        command=["x"],
        folder="/nowhere",
        tasks=tasks,
        sweep=sweep if dot else "",
        task=int(number) if dot else None,
    )
    return Entry(made, Status(state="running"))


def lines(*rows: Mapping[str, object]) -> bytes:
    return b"".join(json.dumps({"time": at, **row}).encode() + b"\n" for at, row in enumerate(rows))


def logged(run: str, path: str, content: bytes) -> None:
    Followed(run).put(path, content)


def steps(found: list[curves.Point]) -> list[tuple[float, float]]:
    return [(point.step, point.value) for point in found]


def only(run: str = RUN) -> dict[str, list[tuple[float, float]]]:
    (found,) = curves.Reader().of([entry(run)])
    return {name: steps(points) for name, points in found.curves.items()}


def test_values_without_steps_and_incomplete_lines() -> None:
    logged(
        RUN,
        "metrics.jsonl",
        lines({"loss": 3}, {"loss": 2, "note": "x"}, {"loss": True, "list": [1]}) + b'{"time":9,"lo',
    )
    assert only() == {"loss": [(0, 3), (1, 2), (2, 1)]}


def test_lines_that_are_too_long() -> None:
    """They are left out, whatever is before and after them, and counted."""
    long = [b"{" + b"x" * (metric_rows.LONGEST * times + more) for times in (1, 3) for more in (-1, 0, 1)]
    logged(RUN, "metrics.jsonl", lines({"loss": 3}) + b"".join(b"%s\n" % each for each in long) + lines({"loss": 2}))
    (found,) = curves.Reader().of([entry(RUN)])
    assert steps(found.curves["loss"]) == [(0, 3), (1, 2)] and found.long_lines == len(long)
    logged(f"{RUN}a", "metrics.jsonl", lines({"loss": 1}) + long[-1])
    (found,) = curves.Reader().of([entry(f"{RUN}a")])
    assert steps(found.curves["loss"]) == [(0, 1)] and found.long_lines == 1


def test_values_that_are_not_finite() -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": "NaN"}, {"step": 2, "loss": "-Infinity"}))
    (nan, infinite) = only()["loss"]
    assert nan[1] != nan[1] and infinite[1] == float("-inf")


def test_restart_replaces_what_followed_its_step() -> None:
    rows = [{"step": step, "loss": step} for step in (0, 1, 2, 3, 4)] + [
        {"step": 2, "loss": 20},
        {"step": 3, "loss": 30},
    ]
    logged(RUN, "metrics.jsonl", lines(*rows))
    assert only() == {"loss": [(0, 0), (1, 1), (2, 20), (3, 30)]}


def test_two_values_of_one_step_are_kept() -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": 1}, {"step": 1, "loss": 2}))
    assert only() == {"loss": [(1, 1), (1, 2)]}


def test_other_ranks_do_not_count() -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": 1}, {"step": 0, "rank": 3, "loss": 9}))
    logged(RUN, "metrics.1.jsonl", lines({"step": 5, "rank": 8, "loss": 9}))
    assert only() == {"loss": [(1, 1)]}


def test_event_files_of_one_folder_continue_each_other(tmp_path: Path) -> None:
    first = written(tmp_path / "a", simple("loss", 4, 0, 10), simple("loss", 3, 1, 11), simple("loss", 2, 2, 12))
    second = written(tmp_path / "b", simple("loss", 1, 1, 20))
    logged(RUN, "work/runs/x/events.out.tfevents.1.host", first)
    logged(RUN, "work/runs/x/events.out.tfevents.2.host", second)
    assert only() == {"loss": [(0, 4), (1, 1)]}


def test_event_files_of_two_folders_get_prefixes(tmp_path: Path) -> None:
    logged(RUN, "work/logs/train/events.out.tfevents.1.host", written(tmp_path / "a", simple("loss", 4, 0)))
    logged(RUN, "work/logs/val/events.out.tfevents.1.host", written(tmp_path / "b", simple("loss", 5, 0)))
    assert only() == {"train/loss": [(0, 4)], "val/loss": [(0, 5)]}


def test_event_files_above_one_another(tmp_path: Path) -> None:
    logged(RUN, "work/events.out.tfevents.1.host", written(tmp_path / "a", simple("loss", 4, 0)))
    logged(RUN, "work/val/events.out.tfevents.1.host", written(tmp_path / "b", simple("loss", 5, 0)))
    assert only() == {"loss": [(0, 4)], "val/loss": [(0, 5)]}


def test_mlflow_adds_what_the_run_did_not_log_itself() -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": 1}))
    logged(RUN, "outputs/mlruns/0/abc/metrics/loss", b"1000 7 0\n")
    logged(RUN, "outputs/mlruns/0/abc/metrics/val/acc", b"1000 0.5 0\n2000 0.75 1\n3000 0.8")
    logged(RUN, "outputs/mlruns/0/abc/params/lr", b"0.1")
    assert only() == {"loss": [(1, 1)], "val/acc": [(0, 0.5), (1, 0.75)]}


def test_tasks_of_a_sweep_in_order() -> None:
    for task in (10, 2):
        logged(SWEEP, f"tasks/{task}/metrics.jsonl", lines({"step": 1, "loss": task}))
    logged(SWEEP, "tasks/3/exit.json", b"{}")
    assert [each.run for each in curves.Reader().of([entry(SWEEP, tasks=20)])] == [f"{SWEEP}.2", f"{SWEEP}.10"]
    assert [each.run for each in curves.Reader().of([entry(f"{SWEEP}.10"), entry(f"{SWEEP}.3")])] == [f"{SWEEP}.10"]


def test_only_changed_runs_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": 1}))
    reader = curves.Reader()
    before = reader.of([entry(RUN)])
    with monkeypatch.context() as patch:
        patch.delattr(curves, "read")
        assert reader.of([entry(RUN)]) == before
    (file,) = Followed(RUN).copies().values()
    with file.file.open("ab") as stream:
        stream.write(lines({"step": 2, "loss": 0}))
    (after,) = reader.of([entry(RUN)])
    assert steps(after.curves["loss"]) == [(1, 1), (2, 0)]
