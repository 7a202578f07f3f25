"""Runs from Python and runs from the command line are the same runs."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path
from xml.etree import ElementTree

import pytest

import yurt
from tests.api.conftest import CONTEXTS, Here
from yurt.api import rows as rows_module
from yurt.api.options import Options
from yurt.errors import NotFoundError, UserError

SCRIPT = """\
import sys, yurt
print("lr", yurt.params()["lr"])
print("on err", file=sys.stderr)
for step in range(3):
    yurt.log(step=step, loss=yurt.params()["lr"] / (1 + step))
import os
open(os.environ["YURT_OUTPUTS"] + "/model", "w").write("weights")
"""


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_run_from_its_start_to_its_results(here: Here, context: str, tmp_path: Path) -> None:
    (here.project / "train.py").write_text(SCRIPT)
    run = yurt.run(["python3", "train.py"], context=context, params={"lr": 0.1}, time="5m", tags=["first"])
    assert run.wait(120) == "completed" == run.state and run.done
    assert run.logs("out") == "lr 0.1\n" and run.logs("err") == "on err\n" and run.params == {"lr": 0.1}
    assert [row["loss"] for row in run.metrics()] == [0.1, 0.05, 0.1 / 3]
    (folder,) = run.fetch(tmp_path / "home")
    assert (folder / "model").read_text() == "weights"
    (row,) = (row for row in here.yurt("ps", "--json").json["data"] if row["id"] == run.id)
    assert row["state"] == "completed" and row["params"] == {"lr": 0.1}
    (same,) = yurt.runs(tag="first", context=context)
    assert same == run and same.exit_code == 0


LABELS: Options = {"time": "5m", "name": "two", "tags": ["a", "b"]}


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_sweep_as_rows(here: Here, context: str) -> None:
    (here.project / "train.py").write_text(SCRIPT)
    run = yurt.run(["python3", "train.py"], context=context, params={"task": 3}, grid={"lr": [0.3, 0.6]}, **LABELS)
    assert run.wait(120) == "completed"
    rows = yurt.runs(sweep="@last-sweep").to_rows()
    assert [(row["id"], row["task"], row["lr"], row["params.task"]) for row in rows] == [
        (f"{run.id}.0", 0, 0.3, 3),
        (f"{run.id}.1", 1, 0.6, 3),
    ]
    assert [row["loss"] for row in rows] == pytest.approx([0.1, 0.2])
    assert [(row["command"], row["name"], row["tags"]) for row in rows] == [
        (f"python3 train.py --task 3 --lr {lr}", "two", ["a", "b"]) for lr in (0.3, 0.6)
    ]
    assert yurt.Runs([run]).to_rows() == rows
    assert [task.id for task in yurt.runs(sweep=run, params={"lr": 0.6})] == [f"{run.id}.1"]
    assert len(yurt.runs(sweep=run, state="failed")) == 0 and len(yurt.runs(sweep=run, limit=1)) == 1
    with pytest.raises(UserError, match="is a sweep"):
        run.logs()


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_run_of_a_call(here: Here, context: str) -> None:
    with yurt.executor(context, snapshot=False, time="5m") as executor:
        with executor.together():
            call = executor.submit(print, "printed")
            assert call.run is None and repr(call) == "<yurt call (not submitted): pending>"
        assert call.result(120) is None
    assert call.run is not None and call.run.wait(120) == "completed"
    run = call.run
    assert (run.id, run.sweep, run.state) == (call.task, call.task.partition(".")[0], "completed")
    assert run.stdout == run.logs("out") == "printed\n" and run.stderr == "" and run.job
    assert repr(run) == f"<yurt.Run {run.id} completed on {context}>"
    assert repr(call) == f"<yurt call {run.id}: finished returned NoneType>"


def test_one_run_by_id_prefix_and_name(here: Here) -> None:
    def started(name: str) -> yurt.Run:
        return yurt.run(["true"], context="local", name=name, snapshot=False)

    first, second = started("baseline"), started("twice")
    again = started("twice")
    assert yurt.get("baseline") == yurt.get(first.id) == first and yurt.get("@last") == again
    assert yurt.get(second.id[:-1]) == second and yurt.get(second.id.upper()) == second
    assert yurt.get("twice") == again, "the newest one"
    for nothing in ("absent", "", "absent.0"):
        with pytest.raises(NotFoundError, match="not found"):
            yurt.get(nothing)
    assert first.wait(60) == "completed" and yurt.get("baseline").exit_code == 0
    sweep = yurt.run(["true"], context="local", grid={"x": [1, 2]}, snapshot=False)
    assert yurt.get(f"{sweep.id}.1").params == {"x": 2} and len(yurt.get(sweep.id).tasks) == 2
    assert sweep.wait(60) == "completed"


def test_runs_are_a_table_in_notebooks(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "<script>alert('&')</script>"
    sweep = yurt.run(["echo", evil], context="local", name=evil, tags=["a&b"], grid={"x": [evil, "y"]}, snapshot=False)
    assert sweep.wait(60) == "completed"
    for runs, rows in ((yurt.runs(), 1), (sweep.tasks, 2)):
        text = runs._repr_html_()
        table = ElementTree.fromstring(text)
        assert len(table.findall("tbody/tr")) == rows and evil not in text and "a&amp;b" in text
        cells = [cell.text for cell in table.findall("tbody/tr")[0]]
        assert {runs[0].id, evil, "local", "a&b"} <= set(cells) and any("completed" in (cell or "") for cell in cells)
    assert f"x={evil}" in cells
    monkeypatch.setattr(rows_module, "MOST_SHOWN", 1)
    assert sweep.tasks._repr_html_().endswith("<p>… and 1 more</p>")


def test_a_traceback_ends_with_the_hint(here: Here) -> None:
    with pytest.raises(NotFoundError) as raised:
        yurt.get("absent")
    text = "".join(traceback.format_exception(raised.value))
    assert text.endswith("NotFoundError: run 'absent' not found\nhint: list runs with `yurt ps`\n")
    raised.value.hint = "another"
    again = pickle.loads(pickle.dumps(raised.value))
    for error in (raised.value, again):
        assert (error.hint, error.__notes__) == ("another", ["hint: another"])
    error.hint = ""
    assert error.__notes__ == []


def test_from_the_command_line_and_back(here: Here) -> None:
    assert here.yurt("run", "--wait", "--grid", "x=1,2", "sh", "-c", "echo $YURT_PARAM_X").code == 0
    tasks = yurt.runs(sweep="@last-sweep")
    assert [task.logs("out") for task in tasks] == ["1\n", "2\n"]
    with pytest.raises(UserError, match="is not a function call"):
        tasks[0].result()


def test_wait_times_out_and_cancel(here: Here) -> None:
    run = yurt.run(["sleep", "100"], context="local")
    with pytest.raises(TimeoutError, match=run.id):
        run.wait(0.3)
    assert run.cancel() in ("cancelled", "running", "queued") and run.wait(60) == "cancelled"


def test_invalid_arguments(here: Here) -> None:
    before = len(yurt.runs(refresh=False))
    with pytest.raises(UserError, match="the command must be a list"):
        yurt.run("python train.py", context="local")
    with pytest.raises(UserError, match="parameter 'f' has the type function"):
        yurt.run(["true"], context="local", params={"f": lambda: 1})
    with pytest.raises(UserError, match="the grid is empty"):
        yurt.run(["true"], context="local", grid={"lr": []})
    with pytest.raises(UserError, match="zipped keys need the same number of values"):
        yurt.run(["true"], context="local", zip={"a": [1], "b": [1, 2]})
    with pytest.raises(UserError, match="1,000,000 combinations"):
        yurt.run(["true"], context="local", grid={"a": range(1000), "b": range(1000)})
    with pytest.raises(UserError, match="option max_parallel must be at least 1, not 0"):
        yurt.run(["true"], context="local", grid={"a": [1]}, max_parallel=0)
    with pytest.raises(NotFoundError):
        yurt.runs(sweep="nothing")
    with pytest.raises(TypeError, match="no option 'partitoin'"):
        yurt.run(["true"], context="local", partitoin="gpu")  # type: ignore[call-arg]
    assert len(yurt.runs(refresh=False)) == before


def test_the_best_context(here: Here) -> None:
    with pytest.raises(UserError, match="no cluster was probed yet"):
        yurt.run(["true"], context="best")
    (here.project / "yurt.yaml").write_text("contexts: [local]\n")
    first = yurt.run(["true"], context="best")
    assert first.context == "local"
    second = yurt.run(["true"], context="best", after=[first])
    assert second.context == "local" and second.wait(60) == "completed"
