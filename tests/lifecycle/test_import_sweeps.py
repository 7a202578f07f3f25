"""Import of sweeps: a second laptop shows the same sweep and tasks as the first, and submits none of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User
from yurt.backends.job import gathered
from yurt.lab import Lab
from yurt.lifecycle import import_sweeps
from yurt.model import sent
from yurt.model.run import Plan, Status
from yurt.model.state import read_ending
from yurt.model.verdict import read_sweep_verdict, sweep_verdict, verdict_of
from yurt.store import Found, Store
from yurt.testing.waiting import eventually
from yurt.transport.local import LocalHost

TASK = """\
echo "this is $2"; echo '{"step":1,"loss":0.'$2'}' > "$YURT_RUN_DIR/metrics.jsonl"; echo $2 > "$YURT_OUTPUTS/n"
case $2 in 2) exit 3 ;; 3) kill -KILL $$ ;; 4*) until [ -e "$YURT_RUN_DIR/go" ]; do sleep 0.1; done ;; esac
"""


@pytest.fixture
def user(user: User) -> User:
    user.environment["YURT_LOCAL_CPUS"] = "2"
    return user


def lose_index(user: User) -> None:
    for file in (user.home / "data").glob("yurt.db*"):
        file.unlink()


def sweep(user: User, sets: str, command: str = TASK, *options: str) -> dict[str, Any]:
    done = user.quick("--json", "run", *options, "--param", "fixed=0.5", "--grid", sets, "sh", "-c", command, "sh")
    found: dict[str, Any] = done.json["data"]["run"]
    return found


def shown(user: User, run: str, **environment: str) -> Any:
    done = user.quick("show", run, "--json", **environment)
    assert done.code == 0, done
    return done.json["data"]


def tally(user: User, run: str) -> dict[str, int]:
    found: dict[str, int] = shown(user, run)["task_states"]
    return found


def ended(laptop: Laptop, run: str) -> dict[str, int]:
    laptop.ended(run)
    return tally(laptop, run)


def test_an_index_that_was_lost(user: User) -> None:
    over = sweep(user, "n=1..3", TASK, "--wait", "--name", "ü", "--tag", "t")
    running = sweep(user, "n=4,1,5,40")
    folder = Path(running["folder"])
    eventually((folder / "tasks" / "1" / "exit.json").exists)
    for task in ("0", "3"):  # these keep running; their metrics are written before this file
        eventually((folder / "tasks" / task / "outputs" / "n").exists)
    before = {run: user.quick("show", run, "--json").out for run in (over["id"], running["id"], f"{over['id']}.1")}
    assert json.loads(before[over["id"]])["data"]["task_states"] == {"completed": 1, "failed": 2}
    assert json.loads(before[running["id"]])["data"]["task_states"] == {"completed": 2, "running": 2}
    lose_index(user)
    done = user.quick("import", "local", "--json")
    assert (done.code, done.json["warnings"]) == (0, [])
    assert sorted(done.json["data"]["new"]) == sorted((over["id"], running["id"]))
    assert {run: user.quick("show", run, "--json").out for run in before} == before
    assert user.quick("import", "local").out == "local: 0 imported, 2 already in the index\n"
    assert user.quick("logs", f"{over['id']}.0").out == "this is 1\n"
    assert user.quick("fetch", over["id"]).code == 0 and (user.project / "results" / f"{over['id']}.1" / "n").exists()
    again = user.quick("--json", "retry", "--failed", over["id"]).json["data"][0]["run"]
    assert (again["tasks"], again["retry_of"]) == (2, over["id"])
    assert user.quick("cancel", running["id"]).code == 0
    user.quick("wait", running["id"])
    assert shown(user, running["id"])["task_states"] == {"completed": 2, "cancelled": 2}


def test_tasks_that_never_started_look_the_same_after_an_import(user: User) -> None:
    """Tasks cancelled before they started have no folder: the sweep's folder records when and why."""
    made = sweep(user, "n=4,40,5..8")
    eventually((Path(made["folder"]) / "tasks" / "1" / "gen.1").exists)
    assert user.quick("cancel", made["id"]).code == 0
    user.quick("wait", made["id"])
    before = user.quick("show", made["id"], "--json").out
    assert json.loads(before)["data"]["task_states"] == {"cancelled": 6}
    user.quick("ps")
    lose_index(user)
    cancelled = time.time()
    eventually(lambda: int(time.time()) > cancelled)  # so that a status with the current time differs
    assert user.quick("import", "local").code == 0
    assert user.quick("show", made["id"], "--json").out == before


def test_a_sweep_cancelled_on_another_machine(user: User) -> None:
    """The second machine cancels; the first learns it from the site and starts nothing."""
    made = sweep(user, "n=4,40,5..8")
    eventually((Path(made["folder"]) / "tasks" / "1" / "gen.1").exists)
    user.quick("ps")
    aside = user.home / "first"
    aside.mkdir()
    for file in (user.home / "data").glob("yurt.db*"):
        file.rename(aside / file.name)
    assert user.quick("import", "local").code == 0
    assert user.quick("cancel", made["id"]).code == 0
    user.quick("wait", made["id"])
    second = shown(user, made["id"])
    lose_index(user)
    for file in aside.iterdir():
        file.rename(user.home / "data" / file.name)
    user.quick("ps")
    first = shown(user, made["id"])
    assert first["task_states"] == second["task_states"] == {"cancelled": 6} and first["rows"] == second["rows"]


def test_an_incomplete_plan_is_named(user: User) -> None:
    made = sweep(user, "n=1,2", "true", "--wait")
    folder = Path(made["folder"])
    plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    (folder / "plan.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(plan, sets=plan.sets[:0])))
    never = folder.parent / "s1nfj000-00005"
    never.mkdir()
    (never / "cancel").touch()
    (folder.parent / "notes").mkdir()
    lose_index(user)
    found = user.quick("import", "local", "--json").json["data"]
    assert found["new"] == [] and found["unreadable"] == {str(folder): "its plan.json is incomplete"}


def test_another_data_folder_on_this_machine(user: User) -> None:
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(
        f"contexts:\n  local: {{type: local, storage_dir: {user.home}/storage}}\n"
    )
    over, running = sweep(user, "n=1..3", TASK, "--wait"), sweep(user, "n=4,5")
    before = shown(user, over["id"])
    other = {"YURT_DATA_HOME": str(user.home / "data2")}
    done = user.quick("import", "local", "--json", **other)
    assert done.json["data"]["new"] == [over["id"]]
    assert (
        "belongs to a yurt installation with a different data folder"
        in done.json["data"]["unreadable"][running["folder"]]
    )
    assert shown(user, over["id"], **other) == before


def test_contents_of_task_folders(tmp_path: Path) -> None:
    """Also on a file system without hard links; the user's files of the same names are ignored."""
    tasks = tmp_path / "s" / "tasks"
    for number in (0, 7, 1234):
        (tasks / str(number) / "outputs").mkdir(parents=True)
        (tasks / str(number) / "outputs" / "exit.json").write_text('{"code":9}')
        (tasks / str(number) / "gen.1").write_text("a.1\n")
        (tasks / str(number) / "gen.2.me").write_text("half")
    (tasks / "0" / "exit.json").write_text('{"code":0,"started":1,"ended":2}\n')
    (tasks / "0" / "metrics.jsonl").write_text('{"a":1}\n{"a":2}\n')
    (tasks / "7" / "exit.json.d").mkdir()
    (tasks / "7" / "exit.json.d" / "text").write_text('{"code":3,"started":1,"ended":2}\n')
    (tasks / "7" / "metrics.jsonl").write_text('{"a":3}')
    folders = f"{tmp_path}/s\n{tmp_path}/none\n"
    answer = LocalHost().run(gathered.tasks_gatherer(), stdin=folders.encode())
    assert answer.code == 0
    found = gathered.read_tasks(answer.text)
    assert found[f"{tmp_path}/none"] == {}
    mine = found[f"{tmp_path}/s"]
    assert sorted(mine) == [0, 7, 1234] and all(each.starts == 1 for each in mine.values())
    endings = {number: read_ending(each.files.get("exit.json", b"")) for number, each in mine.items()}
    assert {number: each and each.code for number, each in endings.items()} == {0: 0, 7: 3, 1234: None}
    assert {number: each.text("metrics.jsonl") for number, each in mine.items()} == {
        0: '{"a":2}',
        7: '{"a":3}',
        1234: "",
    }


def test_a_second_machine_submits_only_later_starts(tmp_path: Path, user: User) -> None:
    """Only the first machine submits first starts; any machine may submit a later start, since the gate decides."""
    made = sweep(user, "n=1..5", "true", "--wait")
    with Store(str(user.home / "data" / "yurt.db")) as first:
        entry, plan = first.get(made["id"]), first.plan(made["id"])
    assert entry is not None
    whole = sent.noted(Status(state="queued", attempts=1, other_machine=True), [("7", "1:0:0-2")])
    with Store(str(tmp_path / "second.db")) as second:
        second.add_found([Found(entry.run, whole, plan, {0: Status(state="completed", started=1.0, ended=2.0)})])
        found = second.get(made["id"])
        assert found is not None and found.status.task_states == {"completed": 1, "queued": 2, "waiting": 2}
        assert second.outbox("local") == [] and second.pending_tasks(made["id"]) == []
        assert [each.run.id for each in second.sent_elsewhere("local")] == [made["id"]]
        second.change_tasks(made["id"], [1], lambda _n, _s: Status(state="waiting", start=2, started=1.0))
        assert second.outbox("local") == [made["id"]] and second.pending_tasks(made["id"]) == [(1, 2)]
        second.change_tasks(made["id"], whole=lambda status: sent.noted(status, [("8", "1:0:3-4")]))
        assert second.sent_elsewhere("local") == []


def test_a_second_machine_submits_nothing_when_all_submitted_tasks_have_finished(tmp_path: Path, user: User) -> None:
    made = sweep(user, "n=1..5", "true", "--wait")
    with Store(str(user.home / "data" / "yurt.db")) as first:
        entry, plan = first.get(made["id"]), first.plan(made["id"])
    assert entry is not None
    whole = sent.noted(Status(state="queued", attempts=1, other_machine=True), [("7", "1:0:0")])
    with Store(str(tmp_path / "second.db")) as second:
        second.add_found([Found(entry.run, whole, plan, {0: Status(state="completed", started=1.0, ended=2.0)})])
        found = second.get(made["id"])
        assert found is not None and found.status.state == "waiting"
        assert second.outbox("local") == []


def test_many_tasks_take_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_sweeps, "TASKS", 10)
    assert list(import_sweeps._batches({"a": 4, "b": 6, "c": 1, "d": 30, "e": 1})) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_the_record_of_unstarted_tasks_is_short() -> None:
    never = Status(state="cancelled", reason="x", ended=1.0)
    tasks = {**dict.fromkeys(range(500), never), 500: Status(state="completed", started=1.0, ended=2.0)}
    text = msgspec.json.encode(sweep_verdict(Status(state="failed", job="1,2"), tasks))
    assert len(text) < 400
    read = read_sweep_verdict(text)
    assert read is not None and dict(read.each(500)) == dict.fromkeys(range(500), verdict_of(never))


SMALL = ["--cpus", "1", "--mem", "50"]


@pytest.mark.lab
@pytest.mark.parametrize("cluster", ["alpha", "beta"])
def test_a_second_laptop_shows_the_same_sweep(laptop: Laptop, second_laptop: Laptop, cluster: str) -> None:
    first, second = laptop, second_laptop
    over = first.run(cluster, *SMALL, "--param", "fixed=0.5", "--grid", "n=1..3", "sh", "-c", TASK, "sh")["run"]
    going = first.run(cluster, *SMALL, "--grid", "n=1,4", "sh", "-c", TASK, "sh")["run"]
    never = first.run(cluster, "--hold", *SMALL, "--grid", "n=1..4", "true")["run"]["id"]
    assert first.quick("cancel", never).code == 0
    assert ended(first, over["id"]) == {"completed": 1, "failed": 2}
    eventually(lambda: tally(first, going["id"]) == {"completed": 1, "running": 1})
    first.quick("ps")
    before = {run: shown(first, run) for run in (over["id"], going["id"], never)}
    done = second.quick("import", cluster, "--project", over["project"], "--json")
    assert done.code == 0 and done.json["warnings"] == []
    assert set(before) <= set(done.json["data"]["new"])
    for run, each in before.items():
        assert shown(second, run) == each
    assert second.quick("logs", f"{over['id']}.0").out == "this is 1\n"
    again = second.quick("retry", "--failed", over["id"], "--json").json["data"][0]["run"]
    assert again["tasks"] == 2 and ended(second, again["id"]) == {"failed": 2}
    assert second.quick("cancel", going["id"]).code == 0
    assert ended(second, going["id"]) == ended(first, going["id"]) == {"completed": 1, "cancelled": 1}
    for run in before:  # only the second laptop has the retry in its index
        texts = [{**shown(each, run), "retried_as": []} for each in (second, first)]
        assert texts[0] == texts[1]


@pytest.mark.lab
def test_only_the_first_laptop_submits_the_rest(laptop: Laptop, second_laptop: Laptop, lab: Lab) -> None:
    first, second, ssh = laptop, second_laptop, Ssh(lab)
    ledger = f"/lustre/scratch/alice/ledger-{time.time()}"
    command = f'echo "$YURT_RUN_ID" >> {ledger}; until [ -e {ledger}.go ]; do sleep 0.1; done'
    options = ["--qos", "few", *SMALL, "--grid", "n=1..9"]
    run = first.run("alpha", *options, "sh", "-c", command)["run"]
    try:
        assert tally(first, run["id"]).get("waiting")
        assert second.quick("import", "alpha", "--project", run["project"]).code == 0
        seen = tally(second, run["id"])
        assert seen.get("waiting") and sum(seen.values()) == 9
        sbatches = ssh("alpha", f"wc -l < {run['folder']}/jobs").split()[-1]
        for _look in range(3):
            second.quick("ps")
        assert ssh("alpha", f"wc -l < {run['folder']}/jobs").split()[-1] == sbatches
    finally:
        ssh("alpha", f"touch {ledger}.go")
    assert ended(first, run["id"]) == {"completed": 9}
    assert ended(second, run["id"]) == {"completed": 9}, "it sees what the first has submitted since"
    lines = [line for line in ssh("alpha", f"cat {ledger}").split() if line.startswith(run["id"])]
    assert sorted(Counter(lines).values()) == [1] * 9
    assert shown(first, run["id"]) == shown(second, run["id"])
