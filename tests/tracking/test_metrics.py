"""`yurt metrics` on this machine: the table, plots, CSV and JSON, also of a running run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from tests.envelopes import problem
from tests.user import User, said
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually


def logs(*losses: object) -> str:
    """Return a shell script that logs a loss at each step."""
    lines = "".join(f'{{"time":{1000 + 60 * at},"step":{at},"loss":{loss} }}\n' for at, loss in enumerate(losses))
    return f"printf '%s' '{lines}' >> \"$YURT_RUN_DIR/metrics.jsonl\""


class Done:
    """A user with two runs and a sweep that have logged a loss."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.first = self._run("run", "--name", "base", "sh", "-c", logs(4, 2, 1))
        self.second = self._run("run", "sh", "-c", logs(5, '"NaN"', 3))
        self.none = self._run("run", "true")
        task = logs("{lr}", "0.5", "{lr}")
        self.sweep = self._run("run", "--grid", "lr=" + ",".join(map(str, range(1, 15))), "sh", "-c", task)

    def _run(self, *words: str) -> str:
        done = self.user.quick("--json", *words[:1], "--wait", *words[1:])
        assert done.code == 0, done
        found: str = done.json["data"]["run"]["id"]
        return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    with User(tmp_path_factory.mktemp("user")) as user:
        yield Done(user)


def bare(text: str) -> str:
    return re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", text)


def test_table(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, done.second)
    head, first, second = answer.out.splitlines()
    assert head.split() == ["run", "metric", "last", "step", "min", "max", "points", "age"]
    assert first.split()[:8] == [done.first, "base", "loss", "1", "2", "1", "4", "3"]
    assert second.split()[:7] == [done.second, "loss", "3", "2", "3", "5", "3"]


def test_table_fits_a_narrow_terminal(done: Done) -> None:
    shown = done.user.spawn("metrics", done.sweep, columns=60, cwd=done.user.project)
    shown.expect(pexpect.EOF)
    lines = [line for line in bare(shown.before).replace("\r", "\n").split("\n") if f"{done.sweep[:4]}" in line]
    assert len(lines) == 14 and max(map(cell_len, lines)) <= 60


def test_run_without_metrics_is_a_warning_beside_others(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, done.none)
    assert answer.code == 0 and answer.err == f"yurt: warning: {done.none} has not logged metrics\n"
    assert said(done.user.quick("metrics", done.none), 3) == f"{done.none}: no metrics found"


def test_json_has_all_points(done: Done) -> None:
    answer = done.user.quick("metrics", done.second, "--json")
    assert problem(answer.out) == ""
    (found,) = answer.json["data"]
    assert found["run"] == done.second
    assert found["metrics"] == {"loss": [[0.0, 1000.0, 5.0], [1.0, 1060.0, None], [2.0, 1120.0, 3.0]]}


def test_csv(done: Done) -> None:
    rows = list(csv.DictReader(io.StringIO(done.user.quick("metrics", done.first, "--csv").out)))
    assert rows[1] == {"run": done.first, "metric": "loss", "step": "1", "time": "1060.000", "value": "2.0"}


def test_plot_of_two_runs_has_marks_and_a_legend(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, done.second, "--plot", "loss", COLUMNS="60", LINES="24")
    lines = answer.out.splitlines()
    assert lines[0] == "loss over steps" and max(map(len, lines)) <= 60
    assert f"o {done.first} base  1 at step 2" in lines and f"x {done.second}  3 at step 2" in lines
    assert "o" in lines[-5] and "\x1b" not in answer.out
    assert answer.err == "1 value not shown: not finite\n"


def test_plot_over_time_and_smoothed(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, "--plot", "loss", "--over", "time", "--smooth", "0.5")
    assert answer.out.startswith("loss (smoothed 0.5) over minutes\n")
    assert answer.out.splitlines()[-1] == f"{done.first} base  1.71429 at minute 2"


def test_plot_on_a_terminal_is_coloured(done: Done) -> None:
    shown = done.user.spawn("metrics", done.first, done.second, "--plot", "loss", cwd=done.user.project)
    shown.expect(pexpect.EOF)
    assert "\x1b[36m" in shown.before and "\x1b[33m" in shown.before
    assert any(0x2800 < ord(character) < 0x2900 for character in shown.before)


def test_plot_in_words(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, "--plot", "loss", "--plain")
    words = f"{done.first} base: step 0: 4; step 1: 2; step 2: 1; minimum 1, maximum 4"
    assert answer.out == f"loss over steps\n{words}\n"


def test_many_curves_say_what_is_left_out(done: Done) -> None:
    answer = done.user.quick("metrics", done.sweep, "--plot", "loss")
    legend = [line for line in answer.out.splitlines() if " at step 2" in line]
    assert len(legend) == 12 and "lr=1 " in legend[0] and "lr=14 " in legend[-1]
    assert "12 of 14 curves: the 6 with the lowest and the 6 with the highest last value" in answer.err
    some = done.user.quick("metrics", done.sweep, "--plot", "loss", "--filter", "lr=3", "--filter", "lr=4")
    assert some.out.count("at step 2") == 2 and some.err == ""


def test_unknown_metric_names_those_that_exist(done: Done) -> None:
    answer = done.user.quick("metrics", done.first, "--plot", "losss")
    assert said(answer, 3) == f"{done.first}: no metric 'losss'; did you mean 'loss'?"
    assert answer.err.splitlines()[1] == "  hint: metrics: loss"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--csv", "--json"], ""),
        (["--csv", "--follow"], "--follow and --csv cannot be combined"),
        (["--smooth", "0.5"], "--smooth needs --plot"),
        (["--plot", "loss", "--smooth", "1"], "--smooth must be below 1, not '1'"),
        (["--plot", "loss", "--smooth", "x"], "--smooth must be a number of at least 0, not 'x'"),
        (["--interval", "5s"], "--interval needs --follow"),
        (["--filter", "lr=1"], ""),
    ],
)
def test_wrong_options(done: Done, words: list[str], message: str) -> None:
    answer = done.user.quick("metrics", done.first, *words)
    assert answer.code == 2
    if "--json" in words:
        assert json.loads(answer.out)["error"]["message"] == "--csv and --json cannot be combined"
    elif message:
        assert said(answer, 2) == message


def test_copies_are_shown_after_the_folder_is_gone(done: Done) -> None:
    user = done.user
    before = user.quick("metrics", done.first, done.second, "--csv").out
    assert user.quick("prune", done.first, "--yes").code == 0
    after = user.quick("metrics", done.first, done.second, "--csv")
    assert (after.code, after.out) == (0, before), after


def test_following_a_running_run_until_it_ends(user: User) -> None:
    script = f"{logs(2, 1)}; {PATIENT}; {logs(2, 1, 0.5)}"
    run = user.quick("--json", "run", "sh", "-c", script).json["data"]["run"]
    eventually(lambda: user.quick("metrics", run["id"]).code == 0)
    shown = user.quick("show", run["id"], "--json").json["data"]
    assert shown["status"]["state"] == "running"
    assert shown["metrics"] == [{"name": "loss", "value": 1, "step": 1}]
    follow = user.spawn("metrics", run["id"], "--plot", "loss", "-f", "--interval", "1s", cwd=user.project)
    follow.expect("1 at step 1")
    (Path(run["folder"]) / "go").touch()
    follow.expect("0.5 at step 2")
    follow.expect(re.escape("\x1b[?1049l"))
    follow.expect("0.5 at step 2")
    follow.expect(pexpect.EOF)
    follow.close()
    assert follow.exitstatus == 0


def test_ctrl_c_gives_the_terminal_back(user: User) -> None:
    run = user.quick("--json", "run", "sh", "-c", f"{logs(2, 1)}; {PATIENT}").json["data"]["run"]["id"]
    eventually(lambda: user.quick("metrics", run).code == 0)
    follow = user.spawn("metrics", run, "-f", cwd=user.project)
    follow.expect(re.escape("\x1b[?1049h"))
    follow.expect("loss")
    follow.sendintr()
    follow.expect(re.escape("\x1b[?1049l"))
    follow.expect("loss")
    follow.expect(pexpect.EOF)
    follow.close()
    assert follow.exitstatus == 130
