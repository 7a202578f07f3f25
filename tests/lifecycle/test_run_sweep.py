"""Sweeps on the command line: the script in a spec file, parameters in the command."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.calls import Called, Yurt

Type = Callable[..., Called]


@pytest.fixture
def typed(yurt: Yurt, tmp_path: Path) -> Iterator[Type]:
    project, before = tmp_path / "project", Path.cwd()
    project.mkdir()
    os.chdir(project)
    yield yurt
    os.chdir(before)


def arguments(typed: Type, *words: str) -> list[str]:
    """Run a sweep and return the arguments of each task."""
    done = typed("run", "--wait", "--json", *words)
    assert done.code == 0, done
    run = done.json["data"]["run"]
    folders = [Path(run["folder"], "tasks", str(number)) for number in range(run["tasks"])] or [Path(run["folder"])]
    return [(folder / "out.log").read_text().rstrip("\n") for folder in folders]


def test_a_script_that_the_spec_file_names(typed: Type) -> None:
    Path("named.py").write_text("spec = [dict(parameters=dict(n=n), script='echo from the file') for n in (1, 2)]\n")
    assert arguments(typed, "--spec", "named.py") == ["from the file --n 1", "from the file --n 2"]
    more = arguments(typed, "--spec", "named.py", "--limit", "1", "--", "--m", "3")
    assert more == ["from the file --m 3 --n 1"]
    assert arguments(typed, "--spec", "named.py", "--limit", "1", "echo", "mine") == ["mine --n 1"]
    Path("bare.py").write_text("spec = [dict(n=1)]\n")
    none = typed("run", "--spec", "bare.py")
    assert (none.code, none.err.splitlines()[0]) == (2, "yurt: no script given, and bare.py does not name one")
    assert typed("run", "--grid", "n=1,2").err.startswith("yurt: no script or command given")


def test_traceback_of_a_spec_file(typed: Type) -> None:
    Path("wrong.py").write_text("def inner():\n    return 1 / 0\n\n\nspec = [inner()]\n")
    short = typed("run", "--spec", "wrong.py", "true")
    assert (short.code, "Traceback" in short.err, "yurt -v run --spec wrong.py" in short.err) == (2, False, True)
    long = typed("-v", "run", "--spec", "wrong.py", "true")
    assert long.code == 2 and "in inner" in long.err and long.err.splitlines()[-1].startswith("yurt: wrong.py:2:")
    assert "Traceback" not in typed("-v", "run", "--json", "--spec", "wrong.py", "true").err


def test_parameters_that_the_command_names(typed: Type) -> None:
    words = ["--grid", "lr=0.1,0.01", "--param", "name=it's $(me)", "--param", "n=3"]
    assert arguments(typed, *words, "echo", "rate={lr}", "{task}", "{name}/{lr}", "{other}", "{{lr}}") == [
        "rate=0.1 0 it's $(me)/0.1 {other} {{lr}} --n 3",
        "rate=0.01 1 it's $(me)/0.01 {other} {{lr}} --n 3",
    ]
    assert arguments(typed, "--grid", "lr=1,2", "sh", "-c", "lr=mine; echo ${lr} $@", "sh") == [
        "mine --lr 1",
        "mine --lr 2",
    ]
    assert arguments(typed, "--grid", "lr=1,2", "--param", "none=null", "echo", "[{none}]", "x") == [
        "[] x --lr 1",
        "[] x --lr 2",
    ]
    assert arguments(typed, "--param", "lr=0.10", "--param", "n=1", "echo", "at {lr}", "{task}") == [
        "at 0.10 {task} --n 1"
    ]
    again = typed("retry", "@last-sweep.1", "--json").json["data"][0]["run"]["id"]
    assert typed("wait", again).code == 0
    assert typed("logs", f"{again}.0").out == "[] x --lr 2\n"


def test_what_a_task_ran_is_recorded(typed: Type) -> None:
    words = ["--grid", "lr=0.1,0.01", "--grid", 'n=["a b"]', "--param", "x=null", "echo", "at {lr}", "--"]
    braces = ["--trainer.learning_rate={lr}", "--out", "to-{task}", "--fixed={other}", "--depth", "3"]
    assert arguments(typed, *words, *braces)[1] == (
        "at 0.01 --trainer.learning_rate=0.01 --out to-1 --fixed={other} --depth 3 --n a b"
    )
    shown = typed("show", "@last-sweep.1", "--json").json["data"]["run"]
    filled = ["--trainer.learning_rate=0.01", "--out", "to-1", "--fixed={other}", "--depth", "3"]
    assert shown["command"] == ["echo", "at 0.01", *filled, "--n", "a b"]
    assert shown["params"] == {"fixed": "{other}", "depth": 3, "lr": 0.01, "n": "a b", "x": None}
    one = typed("run", "--wait", "--json", "--param", "lr=0.1", "echo", "--", "--rate={lr}").json["data"]["run"]
    assert one["params"] == {"rate": 0.1, "lr": 0.1}


def test_ps_finds_sweeps_by_the_parameters_of_their_tasks(typed: Type) -> None:
    first, second = (
        typed("run", "--wait", "--json", "--grid", grid, "--param", "m=1", "--", "echo", "--depth", "3").json["data"]
        for grid in ("q=0.001,7", "q=0.002,8")
    )
    ids = [each["run"]["id"] for each in (second, first)]

    def found(*filters: str) -> list[str]:
        words = [word for each in filters for word in ("--filter", each)]
        return [row["id"] for row in typed("ps", "--cached", "--json", *words).json["data"] if row["id"] in ids]

    assert found("q=0.001") == [ids[1]] == found("q=1e-3", "m=1")
    assert found("m=1") == ids
    assert found("q=0.001", "q=7") == [] == found("q=0.001", "m=2"), "one task must have all of them"
    assert found("q=9") == []


def test_a_failed_sweep_says_why(typed: Type) -> None:
    done = typed("run", "--wait", "--grid", "n=1,2,3", "sh", "-c", "[ {n} = 3 ] && kill -9 $$; exit 7")
    sweep = done.out.split()[0]
    assert done.code == 1 and done.err.rstrip().endswith("s: 3 failed of 3: exit code 7"), done
    (line,) = (line for line in typed("ps", "--cached").out.splitlines() if line.startswith(sweep))
    assert line.endswith("  3 failed of 3: exit code 7")
    shown = typed("show", sweep).out
    assert re.search("^state +failed: exit code 7$", shown, re.MULTILINE)
    *_head, title, first, _second, third = shown.splitlines()
    assert title.split() == ["task", "state", "took", "exit", "reason", "n"]
    assert "7  exit code 7 " in first and "something killed the program (SIGKILL)" in third
    assert typed("wait", f"{sweep}.0").err.endswith(": exit code 7\n")


def test_a_parameter_that_only_some_sets_have(typed: Type) -> None:
    Path("some.py").write_text("spec = [dict(a=1, b=1), dict(a=2)]\n")
    done = typed("run", "--spec", "some.py", "echo", "{a}", "{b}")
    assert (done.code, "uses {b}, but parameter set 2 of 2 has no 'b'" in done.err) == (2, True), done


@pytest.mark.parametrize("grid", ["n=1", "n=1,2"])
def test_logs_of_a_sweep_of_one_and_of_two(typed: Type, grid: str) -> None:
    assert typed("run", "--wait", "--grid", grid, "echo").code == 0
    shown = typed("logs", "-")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.splitlines()[0] == "0 | --n 1"
