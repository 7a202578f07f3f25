"""import: a second machine, or one that lost its index, sees the same runs, to the byte."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User, said
from yurt.lab import Lab
from yurt.model import ids
from yurt.model.run import Plan
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually
from yurt.verbs import import_


def go(run: dict[str, Any]) -> None:
    Path(run["folder"], "go").touch()


def state(user: User, run: str) -> str:
    found: str = user("show", run, "--json").json["data"]["status"]["state"]
    return found


def some_runs(user: User) -> dict[str, str]:
    """One of each kind, as far as this machine has them; three cores, of which the one that waits wants all."""
    sh = ("sh", "-c")
    metrics = '{"step":1,"loss":0.5}'
    written = f'echo x; echo \'{metrics}\' > "$YURT_RUN_DIR/metrics.jsonl"; echo 1 > "$YURT_OUTPUTS/a"'
    found = {
        "completed": user("--json", "run", "--wait", "--name", "ü", "--tag", "t", *sh, written).json,
        "failed": user("--json", "run", "--wait", *sh, "kill -SEGV $$").json,
        "ended unseen": user("--json", "run", *sh, PATIENT).json,
        "cancelled": user("--json", "run", *sh, PATIENT).json,
        "running": user("--json", "run", *sh, PATIENT).json,
    }
    runs = {name: each["data"]["run"] for name, each in found.items()}
    for name in ("ended unseen", "cancelled", "running"):
        eventually(Path(runs[name]["folder"], "gen.1").exists)
    assert user("cancel", runs["cancelled"]["id"]).code == 0
    user("wait", runs["cancelled"]["id"])
    runs["retried"] = user("--json", "retry", runs["failed"]["id"], "--wait").json["data"][0]["run"]
    queued = user("--json", "run", "--cpus", "3", *sh, PATIENT).json["data"]["run"]
    queued_then_cancelled = user("--json", "run", "--cpus", "3", *sh, PATIENT).json["data"]["run"]
    assert user("cancel", queued_then_cancelled["id"]).code == 0
    runs |= {"queued": queued, "never started": queued_then_cancelled}
    go(runs["ended unseen"])
    eventually(Path(runs["ended unseen"]["folder"], "exit.json").exists)
    return {name: run["id"] for name, run in runs.items()}


def test_an_index_that_was_lost(user: User) -> None:
    user.environment["YURT_LOCAL_CPUS"] = "3"
    runs = some_runs(user)
    before = {name: user("show", run, "--json").out for name, run in runs.items()}
    states = {name: json.loads(text)["data"]["status"]["state"] for name, text in before.items()}
    assert states == {
        "completed": "completed",
        "failed": "failed",
        "ended unseen": "completed",
        "cancelled": "cancelled",
        "running": "running",
        "queued": "queued",
        "never started": "cancelled",
        "retried": "failed",
    }
    for file in (user.home / "data").glob("yurt.db*"):
        file.unlink()
    done = user("import", "local", "--json")
    assert (done.code, done.json["kind"], done.json["warnings"]) == (0, "runs-imported", [])
    assert sorted(done.json["data"]["new"]) == sorted(runs.values()) and done.json["data"]["known"] == 0
    assert {name: user("show", run, "--json").out for name, run in runs.items()} == before
    again = user("import", "local")
    assert (again.code, again.out) == (0, f"local: 0 new, {len(runs)} known\n")
    assert user("cancel", runs["queued"]).code == user("cancel", runs["running"]).code == 0
    user("wait", runs["queued"], runs["running"])
    assert state(user, runs["queued"]) == state(user, runs["running"]) == "cancelled"
    assert user("retry", runs["completed"], "--wait").code == 0


def test_another_data_folder_on_this_machine(user: User) -> None:
    """What has ended is imported; what a yurt with another data folder looks after is left alone, and lives on."""
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(
        f"contexts:\n  local: {{type: local, storage_dir: {user.home}/storage}}\n"
    )
    user.environment["YURT_LOCAL_CPUS"] = "3"
    runs = some_runs(user)
    open_ones = {"running", "queued"}
    before = {name: user("show", run, "--json").out for name, run in runs.items() if name not in open_ones}
    other = User.__new__(User)
    other.__dict__ |= user.__dict__
    other.environment = {**user.environment, "YURT_DATA_HOME": str(user.home / "data2")}
    done = other("import", "local", "--json")
    assert sorted(done.json["data"]["new"]) == sorted(run for name, run in runs.items() if name not in open_ones)
    assert len(done.json["warnings"]) == 2 and "looks after it" in done.json["warnings"][0]
    assert {name: other("show", run, "--json").out for name, run in runs.items() if name not in open_ones} == before
    assert state(user, runs["running"]) == "running" and state(user, runs["queued"]) == "queued"


def test_what_cannot_be_understood_is_named(user: User) -> None:
    run = user("--json", "run", "--wait", "true").json["data"]["run"]
    folder = Path(run["folder"])
    record = json.loads((folder / "run.json").read_bytes())
    made = {}
    for name, content in {
        "1nfj000-00000": None,
        "1nfj000-00001": "{",
        "1nfj000-00002": json.dumps({**record, "id": "1nfj000-00002", "created": "tomorrow"}),
        "1nfj000-00003": json.dumps(record),
        "1nfj000-00004": json.dumps({**record, "id": "1nfj000-00004", "kind": "slurm"}),
        "notes": "{}",
    }.items():
        made[name] = folder.parent / name
        made[name].mkdir()
        if content is not None:
            (made[name] / "run.json").write_text(content)
            (made[name] / "plan.json").write_text("null")
    cancelled = folder.parent / "1nfj000-00005"
    cancelled.mkdir()
    (cancelled / "winner").write_text("cancelled\n")
    newer = folder.parent / "1nfj000-00006"
    newer.mkdir()
    (newer / "run.json").write_text(json.dumps({**record, "id": newer.name, "mood": "good", "folder": str(newer)}))
    (newer / "exit.json").write_text('{"code":0,"started":1,"ended":2,"mood":"good"}\n')
    (newer / "status.json").write_text('{"state":"transcended"}\n')
    done = user("import", "local", "--json")
    assert done.code == 0
    assert done.json["data"]["new"] == [newer.name] and done.json["data"]["known"] == 1
    left_out = done.json["data"]["unreadable"]
    assert sorted(Path(each).name for each in left_out) == [f"1nfj000-0000{number}" for number in range(5)]
    assert left_out[str(made["1nfj000-00000"])] == "it has no run.json"
    assert "did a newer one make it?" in left_out[str(made["1nfj000-00002"])]
    assert len(done.json["warnings"]) == 5
    assert state(user, newer.name) == "completed"
    assert "is not known on this machine" in said(user("retry", newer.name), 3), "it has no plan"
    people = user("import", "local")
    assert people.out == "local: 0 new, 2 known, 5 left out\n" and people.err.count("yurt: warning: left out") == 5


def test_one_project_of_several(user: User) -> None:
    first = user("--json", "run", "--wait", "true").json["data"]["run"]
    elsewhere = user.home / "other"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    second = user("--json", "run", "--wait", "true").json["data"]["run"]
    for file in (user.home / "data").glob("yurt.db*"):
        file.unlink()
    assert user("import", "local", "--project", "other", "--json").json["data"]["new"] == [second["id"]]
    assert "no runs of a project 'third'" in said(user("import", "local", "--project", "third"), 3)
    assert user("import", "local", "--project", first["project"], "--json").json["data"]["new"] == [first["id"]]


def test_nothing_there(user: User) -> None:
    assert "there are no runs on local" in said(user("import", "local"), 3)
    assert "there is no context 'nowhere'" in said(user("import", "nowhere"), 3)


def many(user: User, count: int) -> Path:
    """Folders of so many ended runs; returns the one they are in."""
    run = user("--json", "run", "--wait", "true").json["data"]["run"]
    folder = Path(run["folder"])
    plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=Plan)
    for number in range(count):
        run_id = ids.make(1_000_000_000 + number, number)
        place = folder.parent / run_id
        place.mkdir()
        own = msgspec.structs.replace(plan.run, id=run_id, folder=str(place), created=float(number))
        (place / "run.json").write_bytes(msgspec.json.encode(own))
        (place / "plan.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(plan, run=own)))
        (place / "status.json").write_text('{"state":"completed","exit_code":0}\n')
    return folder.parent


def test_thousands_at_once(user: User) -> None:
    many(user, 2500)
    done = user("import", "local", "--json")
    assert done.code == 0 and len(done.json["data"]["new"]) == 2500 and done.json["data"]["known"] == 1


def test_in_several_trips(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into a trip comes with the next; what fits into none is named."""
    folder = many(user, 30)
    large = folder / ids.make(1_000_000_010, 10)
    with (large / "plan.json").open("ab") as file:
        file.write(b" " * 60_000)
    monkeypatch.setattr(import_, "TRIP", 50_000)
    done = user.quick("import", "local", "--json")
    assert done.code == 0
    assert len(done.json["data"]["new"]) == 29
    assert done.json["data"]["unreadable"] == {str(large): "it is too large to be read"}


@pytest.fixture
def laptops(laptop: Laptop, second_laptop: Laptop) -> list[Laptop]:
    return [laptop, second_laptop]


def one_of_each(first: Laptop, ssh: Ssh) -> dict[str, str]:
    """Runs on both clusters, by how they stand."""
    runs: dict[str, str] = {}
    waiting = ("sh", "-c", PATIENT)
    for site in ("alpha", "beta"):
        for name, words in {
            "completed": ("--name", "ü", "--param", "lr=0.1", "sh", "-c", 'echo x; echo 1 > "$YURT_OUTPUTS/a"'),
            "failed": ("sh", "-c", "exit 3"),
            "killed": ("sh", "-c", "kill -KILL $$"),
            **({"timeout": ("--time", "1m", *waiting)} if os.environ.get("YURT_SLOW") else {}),
            "by hand": waiting,
            "cancelled": waiting,
            "running": waiting,
            "held": ("--hold", *waiting),
            "queued": ("--sbatch-option", "begin=now+1hour", *waiting),
            "never started": ("--hold", *waiting),
        }.items():
            runs[f"{name} on {site}"] = first.run(site, *words)["run"]["id"]
    for name, run in runs.items():
        if name.startswith(("cancelled", "running", "by hand")):
            first.starts(run)
    for site in ("alpha", "beta"):
        for name in ("cancelled", "never started"):
            assert first("cancel", runs[f"{name} on {site}"]).code == 0
        ssh(site, f"scancel --name=yurt-{runs[f'by hand on {site}']}")
    for name, run in runs.items():
        if not name.startswith(("running", "queued", "held")):
            first.ended(run)
    return runs


@pytest.mark.lab
def test_a_second_laptop_sees_the_same_to_the_byte(laptops: list[Laptop], lab: Lab) -> None:
    first, second = laptops
    ssh = Ssh(lab)
    runs = one_of_each(first, ssh)
    try:
        before = {name: first("show", run, "--json") for name, run in runs.items()}
        states = {name: each.json["data"]["status"]["state"] for name, each in before.items()}
        expected = {"killed": "failed", "by hand": "cancelled", "never started": "cancelled"}
        kinds = {name: name.partition(" on ")[0] for name in runs}
        assert states == {name: expected.get(kind, kind) for name, kind in kinds.items()}
        for site in ("alpha", "beta"):
            done = second(
                "import", site, "--project", before[f"failed on {site}"].json["data"]["run"]["project"], "--json"
            )
            assert done.code == 0 and done.json["warnings"] == []
            assert {run for name, run in runs.items() if name.endswith(site)} <= set(done.json["data"]["new"])
        for name, run in runs.items():
            assert second("show", run, "--json").out == before[name].out, name
        # From here on they are the second one's as well.
        assert second("cancel", runs["running on alpha"]).code == second("cancel", runs["queued on beta"]).code == 0
        assert second.ended(runs["running on alpha"])["state"] == first.ended(runs["running on alpha"])["state"]
        assert second.row(runs["queued on beta"])["state"] == "cancelled"
        again = second("retry", runs["failed on beta"], "--wait")
        assert again.code == 1, "its code is on the site, and was never on this laptop"
        for run in (runs["running on alpha"], runs["queued on beta"], runs["failed on alpha"]):
            texts = [each("show", run, "--json").out for each in (second, first)]
            assert texts[0] == texts[1]
        folder = json.loads(before["completed on alpha"].out)["data"]["run"]["folder"]
        project = folder.rpartition("/runs/")[0]
        ssh("alpha", f"chmod -R u+w {project}; rm -rf {project}")
        for laptop in laptops:  # both had brought it home
            gone = laptop("show", runs["completed on alpha"], "--json").json["data"]
            assert gone["on_site"] == {"there": False, "parts": {}} and gone["status"]["state"] == "completed"
            assert laptop("logs", runs["completed on alpha"]).out == "x\n"
    finally:
        for run in runs.values():
            first("cancel", run)


@pytest.mark.lab
def test_show_of_what_ended_where_the_site_is_out_of_reach(laptops: list[Laptop], lab: Lab) -> None:
    laptop = laptops[0]
    run = laptop.run("alpha", "sh", "-c", "echo x; exit 3")["run"]["id"]
    laptop.ended(run)
    before = laptop("show", run, "--json").json
    laptop("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        began = time.monotonic()
        after = laptop("show", run, "--json")
        assert time.monotonic() - began < 10
        assert after.code == 0 and after.json["data"] == before["data"]
        assert after.json["warnings"][0].startswith("could not look at alpha: ")
        assert laptop("show", run, "--cached", "--json").json["warnings"] == []
        logs = laptop("logs", run)
        assert (logs.code, logs.out) == (0, "x\n") and "kept here" in logs.err
    finally:
        lab.faults.heal("alpha")
