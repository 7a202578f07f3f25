"""The table of a sweep: columns, sorting, filters, CSV; and how sweeps and tasks are named."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from yurt.errors import NotFoundError, UserError
from yurt.lifecycle.select import which
from yurt.lifecycle.tasks import chosen, plotted, shown, task_rows
from yurt.model import ids, sweep_table
from yurt.model.run import Plan, Run, State, Status
from yurt.model.sweep_table import Column, TaskRow
from yurt.store import Store


def row(
    task: int,
    state: State = "completed",
    *,
    metrics: dict[str, Any] | None = None,
    took: float | None = 1,
    **params: Any,
) -> TaskRow:
    return TaskRow(
        id=f"s.{task}",
        task=task,
        state=state,
        reason="",
        started=None if took is None else 100,
        ended=None if took is None else 100 + took,
        seconds=took,
        exit_code=0 if state == "completed" else None,
        params=params,
        metrics=metrics or {},
    )


def columns(rows: list[TaskRow]) -> list[Column]:
    return sweep_table.columns(rows, 1000)


def numbers(rows: list[TaskRow], *filters: str, sort: str = "") -> list[int]:
    return [each.task for each in chosen(rows, columns(rows), filters=filters, sort=sort)]


ROWS = [
    row(0, lr=0.1, opt="sgd", epochs=3, metrics={"loss": 9}),
    row(1, "failed", took=30, lr=0.01, opt="adam", epochs=3, metrics={"loss": 10.5}),
    row(2, "waiting", took=None, lr=1, opt="sgd", epochs=3),
    row(3, took=4, lr=0.001, opt="adam", epochs=3, metrics={"loss": math.nan}),
    row(4, took=200, lr="auto", opt="adam", epochs=3, metrics={"loss": -2.0, "acc": 1}),
]


def test_columns() -> None:
    titles = [each.title for each in columns(ROWS)]
    assert titles == ["task", "state", "took", "exit", "lr", "opt", "epochs", "loss", "acc"]
    assert sweep_table.constant(ROWS) == {"epochs": 3}
    assert sweep_table.constant([row(0, a=1), row(1, a=True)]) == {}
    assert sweep_table.constant([row(0, a=1), row(1)]) == {}


def test_names_shared_by_columns_parameters_and_metrics() -> None:
    rows = [msgspec.structs.replace(row(0, metrics={"lr": 5, "took": 7}), params={"state": "x", "lr": 1})]
    there = columns(rows)
    titles = [each.title for each in there[4:]]
    assert titles == ["params.state", "params.lr", "metrics.lr", "metrics.took"]
    values = [sweep_table.column(there, key).of(rows[0]) for key in ("state", "took", *titles)]
    assert values == ["completed", 1, "x", 1, 5, 7]
    with pytest.raises(LookupError):
        sweep_table.column(there, "lr")


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("loss", [4, 0, 1, 2, 3]),
        ("-loss", [1, 0, 4, 2, 3]),
        ("metrics.loss", [4, 0, 1, 2, 3]),
        ("lr", [3, 1, 0, 2, 4]),
        ("-lr", [2, 0, 1, 3, 4]),
        ("state", [0, 3, 4, 1, 2]),
        ("-task", [4, 3, 2, 1, 0]),
        ("took", [0, 3, 1, 4, 2]),
        ("-took", [4, 1, 3, 0, 2]),
        ("opt", [1, 3, 4, 0, 2]),
    ],
)
def test_sorted(key: str, order: list[int]) -> None:
    assert numbers(ROWS, sort=key) == order


def test_the_running_time_of_a_running_task() -> None:
    running = msgspec.structs.replace(ROWS[0], state="running", seconds=None, ended=None)
    assert sweep_table.took(running, 1000) == 900 and sweep_table.took(ROWS[2], 1000) is None


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (["lr=0.1"], [0]),
        (["lr=1e-1"], [0]),
        (["lr=1.0"], [2]),
        (["lr=auto"], [4]),
        (["opt=adam", "state=completed"], [3, 4]),
        (["state=failed", "state=waiting"], [1, 2]),
        (["opt=ada"], []),
        (["task=3"], [3]),
    ],
)
def test_filtered(filters: list[str], left: list[int]) -> None:
    assert numbers(ROWS, *filters) == left


@pytest.mark.parametrize(
    ("filters", "sort", "message"),
    [
        (["lr"], "", "'lr' is not KEY=VALUE"),
        (["=1"], "", "'=1' is not KEY=VALUE"),
        (["state=fialed"], "", "unknown state 'fialed'"),
        (["optt=1"], "", "unknown column 'optt'; did you mean 'opt'?"),
        ([], "los", "--sort: unknown column 'los'; did you mean 'loss'?"),
        ([], "-zzzz", "--sort: unknown column 'zzzz'"),
    ],
)
def test_invalid_filters_and_sort_keys(filters: list[str], sort: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        numbers(ROWS, *filters, sort=sort)
    assert message in caught.value.message


def test_csv_round_trip() -> None:
    nasty = 'a,"b"\r\nc'
    rows = [row(0, text=nasty, flag=True, many=[1, "x"]), row(1, took=None, text="", flag=None)]
    text = sweep_table.as_csv(columns(rows), rows)
    assert text.endswith("\r\n") and text.count('""b""') == 1
    back = list(csv.DictReader(io.StringIO(text, newline="")))
    first = {"task": "0", "state": "completed", "took": "1", "exit": "0"}
    assert back[0] == {**first, "text": nasty, "flag": "true", "many": '[1,"x"]'}
    assert back[1] == {**first, "task": "1", "took": "", "text": "", "flag": "", "many": ""}


def test_columns_that_do_not_fit() -> None:
    there = columns(ROWS)
    widths = {each.title: 8 for each in there}

    def titles(room: int, *keep: str) -> tuple[list[str], list[str]]:
        shown, left_out = sweep_table.fitting(there, widths, room, keep)
        assert sum(widths[each.title] + 2 for each in shown) - 2 <= max(room, 38)
        return [each.title for each in shown[4:]], [each.title for each in left_out]

    assert titles(88) == (["lr", "opt", "epochs", "loss", "acc"], [])
    assert titles(87) == (["lr", "opt", "loss", "acc"], ["epochs"])
    assert titles(70) == (["lr", "opt", "loss"], ["epochs", "acc"])
    assert titles(50, "acc") == (["acc"], ["lr", "opt", "epochs", "loss"])
    assert titles(10)[0] == []


def test_what_to_plot() -> None:
    drawn = plotted("s", ROWS, columns(ROWS), "loss", "opt")
    assert [(point.x, point.values) for point in drawn.points] == [("sgd", [9]), ("adam", [10.5, -2.0])]
    assert (drawn.metric, drawn.over, drawn.without) == ("loss", "opt", 2)
    with pytest.raises(UserError, match="varying parameters: lr, opt"):
        plotted("s", ROWS, columns(ROWS), "loss", "")
    only = [row(0, lr=1, metrics={"loss": 1}), row(1, lr=2, metrics={"loss": 1})]
    assert plotted("s", only, columns(only), "loss", "").over == "lr"
    with pytest.raises(UserError, match="no task has both a number for 'state'"):
        plotted("s", ROWS, columns(ROWS), "state", "lr")


OLD, NEW, ONE = ids.make_sweep(1e9, 77), ids.make_sweep(1.5e9, 88), ids.make(1.6e9, 77)
"""The first and the last have the same second part."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "yurt.db")) as found:
        for name, size in ((OLD, 3), (NEW, 12), (ONE, 0)):
            run = Run(
                id=name,
                context="local",
                context_type="local",
                project="p",
                source="/p",
                created=ids.made_at(name.removeprefix("s")),
                command=["true"],
                folder=f"/nowhere/{name}",
                params={"epochs": 3},
                tasks=size,
            )
            sets = [{"seed": number} for number in range(size)]
            plan = Plan(run=run, project_folder="/nowhere", store="", words=[b"true"], sets=sets)
            found.add(run, Status(), plan)
        yield found


def test_which_sweep_or_task(store: Store) -> None:
    found = {word: which(store, [word])[0].run.id for word in ("@last-sweep", "@last", OLD, NEW.partition("-")[2])}
    assert list(found.values()) == [NEW, ONE, OLD, NEW]
    for word in (f"{NEW}.11", f"{NEW[:5]}.11", f"{NEW.partition('-')[2]}.11", "@last-sweep.11", f"{NEW.upper()}.011"):
        (entry,) = which(store, [word])
        assert (entry.run.id, entry.run.params) == (f"{NEW}.11", {"epochs": 3, "seed": 11}), word


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (f"{OLD}.3", f"sweep {OLD} has no task 3; its tasks are 0 to 2"),
        (f"{OLD}.{'9' * 5000}", f"sweep {OLD} has no task 999999999999…; its tasks are 0 to 2"),
        (f"{ONE}.1", f"run {ONE} is not a sweep and has no task 1"),
        ("@last.1", f"run {ONE} is not a sweep"),
        ("zzzz.1", "run 'zzzz.1' not found"),
        (f"{OLD}.x", f"run '{OLD}.x' not found"),
        (f"{OLD}.-1", f"run '{OLD}.-1' not found"),
        (".1", "run '.1' not found"),
    ],
)
def test_no_such_task(store: Store, word: str, message: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        which(store, [word])
    assert message in caught.value.message and len(caught.value.message) < 200


def test_a_task_of_an_ambiguous_name_belongs_to_the_sweep(store: Store) -> None:
    word = OLD.partition("-")[2]
    assert sorted(store.matching(word)) == sorted([OLD, ONE])
    assert which(store, [f"{word}.1"])[0].run.id == f"{OLD}.1"
    with pytest.raises(UserError, match="is ambiguous: it matches 2 runs"):
        which(store, [word])


def test_a_task_of_an_ambiguous_sweep(store: Store) -> None:
    with pytest.raises(UserError, match="is ambiguous: it matches 2 runs"):
        which(store, ["s.1"])


def test_no_sweeps_yet(tmp_path: Path) -> None:
    with Store(str(tmp_path / "yurt.db")) as empty, pytest.raises(NotFoundError, match="there are no sweeps yet"):
        which(empty, ["@last-sweep"])


def test_tasks_without_a_status_of_their_own(store: Store) -> None:
    seen = Status(state="running", started=5.0, attempts=1, metrics={"time": 4.0, "step": 2, "loss": 0.5})
    over = Status(state="completed", started=6.0, ended=9.0, exit_code=0, attempts=1)
    how = {1: seen, 2: over}
    store.change_tasks(
        NEW,
        how,
        lambda number, _status: how[number],
        lambda whole: msgspec.structs.replace(whole, submitted_tasks="0-3"),
    )
    (entry,) = which(store, [NEW])
    rows = task_rows(store, entry)
    assert [each.state for each in rows] == ["queued", "running", "completed", "queued", *["waiting"] * 8]
    assert [each.state for each in rows] == [store.task_status(NEW, number, entry.status).state for number in range(12)]
    assert rows[7].params == {"epochs": 3, "seed": 7} and rows[7].id == f"{NEW}.7"
    assert [each.metrics for each in rows[:3]] == [{}, {"loss": 0.5}, {}], "metrics of the last refresh"
    found = shown(store, entry, rows, rows[:2], packages={}, candidates=[])
    assert (found.status.started, found.status.ended, len(found.rows)) == (5.0, None, 2)
    assert found.task_states == {"running": 1, "completed": 1, "queued": 2, "waiting": 8}
