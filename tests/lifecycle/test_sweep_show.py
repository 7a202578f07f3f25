"""`yurt ps` and `yurt show` of sweeps, with real local sweeps."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.user import User, said
from yurt.cli.app import run_names
from yurt.model import ids
from yurt.model.run import Status
from yurt.store import Store
from yurt.testing.waiting import eventually

TRAIN = """\
import json, os, sys
p = json.load(open(os.environ["YURT_PARAMS"]))
with open(os.environ["YURT_RUN_DIR"] + "/metrics.jsonl", "w") as file:
    for step in (1, 2):
        print(json.dumps({"step": step, "loss": p["seed"] * 10 + p["lr"] / step, "best": p["lr"]}), file=file)
sys.exit(4 if (p["lr"], p["seed"]) == (0.1, 2) else 0)
"""

PATIENT = 'until [ -e "$YURT_RUN_DIR/../../go" ]; do sleep 0.1; done; exit $YURT_PARAM_CODE'


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    with User(tmp_path_factory.mktemp("user")) as found, pytest.MonkeyPatch.context() as patch:
        (found.project / "train.py").write_text(TRAIN)
        patch.chdir(found.project)
        yield found


@pytest.fixture(scope="module")
def sweep(user: User) -> str:
    """A sweep of six tasks; one of them fails."""
    grid = ("--grid", "lr=0.1,0.001", "--grid", "seed=1..3", "--param", "epochs=5")
    done = user("--json", "run", "--name", "six", *grid, "--", "python3", "train.py")
    assert done.code == 0, done
    name: str = done.json["data"]["run"]["id"]

    def ended() -> bool:
        (row,) = (row for row in user("ps", "--json").json["data"] if row["id"] == name)
        return bool(row["state"] == "failed")

    eventually(ended)
    return name


@pytest.fixture
def other_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A user without the sweep, for other runs: some tests name the last sweep, or all runs."""
    with User(tmp_path) as found:
        monkeypatch.chdir(found.project)
        yield found


def table(text: str) -> list[dict[str, str]]:
    """Return the rows below the headings."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.lstrip().startswith("task  "))
    return [dict(zip(lines[first].split(), line.split(), strict=True)) for line in lines[first + 1 :]]


def test_ps_is_one_line(user: User, sweep: str) -> None:
    lines = [line for line in user("ps", "--cached").out.splitlines() if sweep in line]
    assert len(lines) == 1 and lines[0].endswith("python3 train.py  5 completed, 1 failed of 6: exit code 4"), lines
    (row,) = (row for row in user("ps", "--cached", "--json").json["data"] if row["id"] == sweep)
    assert (row["tasks"], row["task_states"]) == (6, {"completed": 5, "failed": 1})


@pytest.mark.parametrize(("columns", "words"), [(80, r"x+  5/6"), (120, r"━+x+  5/6 done, 1 failed")])
def test_ps_on_a_terminal(user: User, sweep: str, columns: int, words: str) -> None:
    child = user.spawn("ps", "--cached", columns=columns)
    name = sweep if columns > 100 else sweep.partition("-")[2]
    child.expect_exact(name)
    raw = child.read()
    line = re.sub(r"\x1b\[[0-9;]*m", "", raw.splitlines()[0])
    assert re.search(words, line) and len(name + line) <= columns, line
    assert "\x1b[32m━" in raw and "\x1b[31mx" in raw


def test_a_run_has_no_tasks(other_user: User) -> None:
    run = other_user("--json", "run", "--wait", "true").json["data"]["run"]["id"]
    (row,) = (row for row in other_user("ps", "--cached", "--json").json["data"] if row["id"] == run)
    assert (row["tasks"], row["task_states"]) == (0, {})
    for words in (["--csv"], ["--sort", "lr"], ["--filter", "lr=1"], ["--limit", "3"], ["--plot", "loss"]):
        shown = other_user.quick("show", run, *words)
        assert said(shown, 2) == f"{words[0]} is only for sweeps, but {run} is a single run"


def test_show(user: User, sweep: str) -> None:
    done = user("show", sweep)
    assert done.code == 0 and done.err == ""
    facts = dict(line.split(maxsplit=1) for line in done.out.splitlines() if re.match(r"[a-z]+  ", line))
    assert (facts["sweep"], facts["name"], facts["command"]) == (sweep, "six", "python3 train.py")
    assert facts["state"] == "failed: exit code 4"
    assert facts["tasks"] == "5 completed, 1 failed of 6" and {"started", "finished", "took"} <= set(facts)
    assert "\nparameters\n  epochs: 5\n" in done.out
    rows = table(done.out)
    assert [(row["task"], row["lr"], row["seed"], row["loss"]) for row in rows] == [
        ("0", "0.1", "1", "10.05"),
        ("1", "0.1", "2", "20.05"),
        ("2", "0.1", "3", "30.05"),
        ("3", "0.001", "1", "10.0005"),
        ("4", "0.001", "2", "20.0005"),
        ("5", "0.001", "3", "30.0005"),
    ]
    assert [(row["state"], row["exit"]) for row in rows[:2]] == [("completed", "0"), ("failed", "4")]
    assert "epochs" not in rows[0]


def test_sort_filter_limit(user: User, sweep: str) -> None:
    done = user.quick("show", "@last-sweep", "--cached", "--sort", "-loss", "--filter", "lr=1e-3", "--limit", "2")
    assert [row["task"] for row in table(done.out)] == ["5", "4"]
    assert done.err == "1 more task; --limit 3 shows all\n"
    done = user.quick("show", sweep, "--cached", "--filter", "state=failed")
    assert [row["task"] for row in table(done.out)] == ["1"] and done.err == "1 of 6 tasks\n"
    sentence = f"no task of {sweep} matches seed=99 and lr=0.1"
    assert said(user.quick("show", sweep, "--cached", "--filter", "seed=99", "--filter", "lr=0.1"), 3) == sentence


def test_json(user: User, sweep: str) -> None:
    found = user.quick("show", sweep, "--cached", "--sort", "-seed", "--filter", "lr=0.1", "--json").json
    data: dict[str, Any] = found["data"]
    assert found["kind"] == "sweep-shown"
    known = {
        "run",
        "status",
        "task_states",
        "retried_as",
        "rows",
        "packages",
        "candidates",
        "tracked",
        "deleted_at",
        "usage",
    }
    assert set(data) == {*known, "failures"}
    assert data["failures"] == [{"why": "exit code 4", "count": 1, "tasks": "1"}]
    assert data["run"]["id"] == sweep and data["task_states"] == {"completed": 5, "failed": 1}
    assert data["status"]["state"] == "failed" and data["status"]["started"] <= data["status"]["ended"]
    assert [(row["id"], row["params"], row["metrics"]) for row in data["rows"]][1:] == [
        (f"{sweep}.1", {"epochs": 5, "lr": 0.1, "seed": 2}, {"loss": 20.05, "best": 0.1}),
        (f"{sweep}.0", {"epochs": 5, "lr": 0.1, "seed": 1}, {"loss": 10.05, "best": 0.1}),
    ]


def test_csv(user: User, sweep: str) -> None:
    done = user("show", sweep, "--csv", "--cached")
    assert done.code == 0 and "\x1b" not in done.out
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == ["task", "state", "took", "exit", "lr", "seed", "epochs", "loss", "best"]
    assert [row["seed"] for row in rows] == ["1", "2", "3"] * 2 and rows[1]["exit"] == "4"


def test_plots(user: User, sweep: str) -> None:
    done = user.quick("show", sweep, "--cached", "--plot", "loss", "--over", "seed", COLUMNS="60", LINES="20")
    assert done.code == 0 and done.out.startswith(f"{sweep}: loss over seed, mean and range\n")
    *plot, axis, names = done.out.splitlines()[1:]
    assert names.split() == ["1", "2", "3"] and axis.count("┴") == 3
    assert len(plot) == 14 and sum(line.count("•") for line in plot) == 3 and max(map(len, plot)) <= 60
    at = [names.index(word) for word in "123"]
    rows = [next(row for row, line in enumerate(plot) if line[each : each + 1] == "•") for each in at]
    assert rows[0] > rows[1] > rows[2], "it grows"
    done = user.quick("show", sweep, "--cached", "--plot", "loss", "--over", "state", COLUMNS="60")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["completed", "failed"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sort", "lose"], "--sort: unknown column 'lose'; did you mean 'loss'?"),
        (["--filter", "lr"], "--filter: 'lr' is not KEY=VALUE"),
        (["--filter", "state=bad"], "--filter: unknown state 'bad'"),
        (["--plot", "loss"], "--plot needs --over PARAMETER; varying parameters: lr, seed"),
        (["--plot", "loss", "--over", "sed"], "--over: unknown column 'sed'; did you mean 'seed'?"),
        (["--over", "lr"], "--over needs --plot"),
        (["--csv", "--plot", "loss"], "--csv and --plot cannot be combined"),
    ],
)
def test_wrong_options(user: User, sweep: str, words: list[str], sentence: str) -> None:
    assert said(user.quick("show", sweep, "--cached", *words), 2) == sentence


def test_one_task(user: User, sweep: str) -> None:
    part = sweep.partition("-")[2]
    for word in (f"{sweep}.1", f"{part}.1", "@last-sweep.1"):
        shown = user("show", word, "--json").json
        assert (shown["kind"], shown["data"]["run"]["id"]) == ("run-shown", f"{sweep}.1")
        assert shown["data"]["status"]["exit_code"] == 4
        assert [each["name"] for each in shown["data"]["metrics"]] == ["loss", "best"]
    assert said(user.quick("show", f"{part}.6"), 3) == f"sweep {sweep} has no task 6; its tasks are 0 to 5"


def test_the_table_on_a_terminal(user: User, sweep: str) -> None:
    child = user.spawn("show", sweep, "--cached", "--sort", "best", columns=46)
    text = re.sub(r"\x1b\[[0-9;]*m", "", child.read())
    titles = next(line.split() for line in text.splitlines() if line.startswith("task  state"))
    assert titles == ["task", "state", "took", "exit", "lr", "best"], titles
    assert "columns not shown: seed, loss; --csv prints all columns" in text
    lines = text.splitlines()
    assert max(map(len, lines[lines.index("") + 1 :][-9:-1])) <= 46


def test_a_terminal_gets_fifty_rows(user: User, sweep: str) -> None:
    with Store(str(user.home / "data" / "yurt.db")) as index:
        entry, plan = index.get(sweep), index.plan(sweep)
        assert entry is not None and plan is not None
        long = msgspec.structs.replace(entry.run, id=ids.make_sweep(1e9, 1), created=1e9, tasks=55)
        sets = [{"seed": number} for number in range(55)]
        index.add(long, Status(), msgspec.structs.replace(plan, run=long, sets=sets))
    child = user.spawn("show", long.id, "--cached")
    text = child.read()
    assert len(re.findall("waiting", text)) == 1 + 1 + 50 and "5 more tasks; --limit 55 shows all" in text
    assert len(user.quick("show", long.id, "--csv", "--cached").out.splitlines()) == 56
    assert "more" not in user.quick("show", long.id, "--cached").err
    with Store(str(user.home / "data" / "yurt.db")) as index:
        index.remove(long.id)  # or a later command would submit it


def test_completion(user: User, sweep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)

    def complete(word: str) -> list[str]:
        return run_names(None, None, word)  # type: ignore[arg-type]

    part = sweep.partition("-")[2]
    assert complete(sweep[:6]) == [sweep] and complete(part[:4]) == [part]
    assert complete(f"{part}.") == [f"{part}.{task}" for task in range(6)] and complete(f"{sweep}.4") == [f"{sweep}.4"]
    assert complete("@") == ["@last", "@last-sweep"] and complete("@last-") == ["@last-sweep"]
    assert complete("zzzzzz.") == []


def test_while_it_runs(other_user: User) -> None:
    words = ("--max-parallel", "2", "--grid", "code=0..5", "--", "sh", "-c", PATIENT)
    run = other_user("--json", "run", *words).json["data"]["run"]

    def shown() -> dict[str, Any]:
        data: dict[str, Any] = other_user("show", run["id"], "--json").json["data"]
        return data

    eventually(lambda: shown()["task_states"] == {"running": 2, "queued": 4})
    found = shown()
    assert (found["status"]["state"], found["status"]["ended"]) == ("running", None)
    assert [row["state"] for row in found["rows"]] == ["running"] * 2 + ["queued"] * 4
    lines = [line.split() for line in other_user("show", run["id"]).out.splitlines()[-6:]]
    assert [(line[1], line[-1]) for line in lines[1:4]] == [("running", "1"), ("queued", "2"), ("queued", "3")]
    Path(run["folder"], "go").touch()
    eventually(lambda: shown()["task_states"] == {"completed": 1, "failed": 5})
    assert [row["exit_code"] for row in shown()["rows"]] == [0, 1, 2, 3, 4, 5]
