"""import: a second machine, or one that lost its index, shows exactly the same runs."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.user import User, said
from yurt.backends.shell import listing
from yurt.lab import Lab
from yurt.model import ids
from yurt.model.run import Plan
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually


def go(run: dict[str, Any]) -> None:
    Path(run["folder"], "go").touch()


def state(user: User, run: str) -> str:
    found: str = user.quick("show", run, "--json").json["data"]["status"]["state"]
    return found


def some_runs(user: User) -> dict[str, str]:
    """Local runs in each state. The machine has three cores, and the queued run needs all of them."""
    user.environment["YURT_LOCAL_CPUS"] = "3"
    metrics = '{"step":1,"loss":0.5}'
    written = f'echo x; echo \'{metrics}\' > "$YURT_RUN_DIR/metrics.jsonl"; echo 1 > "$YURT_OUTPUTS/a"'

    def run(*words: str) -> dict[str, Any]:
        found: dict[str, Any] = user.quick("--json", "run", *words[:-1], "sh", "-c", words[-1]).json["data"]["run"]
        return found

    runs = {
        "completed": run("--name", "ü", "--tag", "t", written),
        "failed": run("kill -SEGV $$"),
    }
    assert user.quick("wait", *(each["id"] for each in runs.values())).code == 1
    runs |= {name: run(PATIENT) for name in ("ended unseen", "cancelled", "running")}
    for name in ("ended unseen", "cancelled", "running"):
        eventually(Path(runs[name]["folder"], "gen.1").exists)
    assert user.quick("cancel", runs["cancelled"]["id"]).code == 0
    user.quick("wait", runs["cancelled"]["id"])
    runs["retried"] = user.quick("--json", "retry", runs["failed"]["id"], "--wait").json["data"][0]["run"]
    runs |= {name: run("--cpus", "3", PATIENT) for name in ("queued", "never started")}
    assert user.quick("cancel", runs["never started"]["id"]).code == 0
    go(runs["ended unseen"])
    eventually(Path(runs["ended unseen"]["folder"], "exit.json").exists)
    return {name: run["id"] for name, run in runs.items()}


def shows(user: User, runs: dict[str, str], **environment: str) -> dict[str, str]:
    """The exact output of `show --json` for each run, without what a running one has used so far."""
    found = {}
    for name, run in runs.items():
        text = user.quick("show", run, "--json", **environment).out
        data = json.loads(text)["data"]
        running = data["status"]["state"] == "running" and data["usage"] is not None
        found[name] = re.sub(r'"usage":\{[^}]*\}', '"usage":null', text) if running else text
    return found


def test_an_index_that_was_lost(user: User) -> None:
    runs = some_runs(user)
    before = shows(user, runs)
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
    done = user.quick("import", "local", "--json")
    assert (done.code, done.json["kind"], done.json["warnings"]) == (0, "runs-imported", [])
    assert sorted(done.json["data"]["new"]) == sorted(runs.values()) and done.json["data"]["known"] == 0
    assert shows(user, runs) == before
    again = user.quick("import", "local")
    assert (again.code, again.out) == (0, f"local: 0 imported, {len(runs)} already in the index\n")
    assert user.quick("cancel", runs["queued"]).code == user.quick("cancel", runs["running"]).code == 0
    user.quick("wait", runs["queued"], runs["running"])
    assert state(user, runs["queued"]) == state(user, runs["running"]) == "cancelled"
    assert user.quick("retry", runs["completed"], "--wait").code == 0


def test_a_retry_of_an_imported_run_sends_only_secrets_that_the_user_names(user: User) -> None:
    """Anyone who can write a record on a site can write names of secrets into it."""
    user.environment |= {"TOKEN": "a", "KEY": "b"}
    words = ["--secret", "TOKEN", "--secret", "KEY", "--wait", "sh", "-c", 'echo "got $TOKEN$KEY"']
    run = user.quick("run", "--json", "--no-snapshot", *words).json["data"]["run"]["id"]
    assert user.quick("retry", run, "--wait").code == 0, "this machine knows what it sent"
    for file in (user.home / "data").glob("yurt.db*"):
        file.unlink()
    assert user.quick("import", "local").code == 0
    for given, missing in (((), "TOKEN, KEY"), (("--secret", "TOKEN"), "KEY")):
        refused = user.quick("retry", run, *given)
        assert refused.code == 2 and f"name secrets of this machine: {missing}\n" in refused.err
    again = user.quick("retry", run, "--secret", "TOKEN", "--secret", "KEY", "--json").json["data"][0]["run"]["id"]
    assert user.quick("wait", again).code == 0 and "got ab" in user.quick("logs", again).out
    assert user.quick("retry", again, "--wait").code == 0, "the retry was made here"


def test_another_data_folder_on_this_machine(user: User) -> None:
    """Finished runs are imported. Unfinished runs of another yurt installation are skipped and keep running."""
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(
        f"contexts:\n  local: {{type: local, storage_dir: {user.home}/storage}}\n"
    )
    runs = some_runs(user)
    over = {name: run for name, run in runs.items() if name not in ("running", "queued")}
    before = shows(user, over)
    other = {"YURT_DATA_HOME": str(user.home / "data2")}
    done = user.quick("import", "local", "--json", **other)
    assert sorted(done.json["data"]["new"]) == sorted(over.values())
    assert (
        len(done.json["warnings"]) == 2
        and "belongs to a yurt installation with a different data folder" in done.json["warnings"][0]
    )
    assert shows(user, over, **other) == before
    assert state(user, runs["running"]) == "running" and state(user, runs["queued"]) == "queued"


def test_folders_that_cannot_be_read_are_named(user: User) -> None:
    run = user.quick("--json", "run", "--wait", "true").json["data"]["run"]
    folder = Path(run["folder"])
    record = json.loads((folder / "run.json").read_bytes())
    made = {}
    for name, content in {
        "1nfj000-00000": None,
        "1nfj000-00001": "{",
        "1nfj000-00002": json.dumps({**record, "id": "1nfj000-00002", "created": "tomorrow"}),
        "1nfj000-00003": json.dumps(record),
        "1nfj000-00004": json.dumps({**record, "id": "1nfj000-00004", "context_type": "slurm"}),
        "notes": "{}",
    }.items():
        made[name] = folder.parent / name
        made[name].mkdir()
        if content is not None:
            (made[name] / "run.json").write_text(content)
            (made[name] / "plan.json").write_text("null")
    (folder.parent / "1nfj000-00007").symlink_to(folder)
    cancelled = folder.parent / "1nfj000-00005"
    cancelled.mkdir()
    (cancelled / "winner").write_text("cancelled\n")
    newer = folder.parent / "1nfj000-00006"
    newer.mkdir()
    (newer / "run.json").write_text(json.dumps({**record, "id": newer.name, "mood": "good", "folder": str(newer)}))
    (newer / "exit.json").write_text('{"code":0,"started":1,"ended":2,"mood":"good"}\n')
    (newer / "status.json").write_text('{"state":"transcended"}\n')
    done = user.quick("import", "local", "--json")
    assert done.code == 0
    assert done.json["data"]["new"] == [newer.name] and done.json["data"]["known"] == 1
    skipped = done.json["data"]["unreadable"]
    assert sorted(Path(each).name for each in skipped) == [f"1nfj000-0000{number}" for number in (0, 1, 2, 3, 4, 7)]
    assert skipped[str(made["1nfj000-00000"])] == "it has no run.json"
    assert "it may be from a newer version" in skipped[str(made["1nfj000-00002"])]
    assert len(done.json["warnings"]) == 6
    assert state(user, newer.name) == "completed"
    partial = f"run {newer.name} was submitted from another machine, and this machine has only part of its record"
    assert said(user.quick("retry", newer.name), 3) == partial
    people = user.quick("import", "local")
    assert (
        people.out == "local: 0 imported, 2 already in the index, 6 unreadable\n"
        and people.err.count("yurt: warning: skipped") == 6
    )


def test_one_project_of_several(user: User) -> None:
    elsewhere = user.home / "other"
    elsewhere.mkdir()
    first, second = (
        user("--json", "run", "--wait", "true", cwd=folder).json["data"]["run"] for folder in (user.project, elsewhere)
    )
    for file in (user.home / "data").glob("yurt.db*"):
        file.unlink()
    assert user.quick("import", "local", "--project", "other", "--json").json["data"]["new"] == [second["id"]]
    assert "no runs of project 'third' found on local" in said(user.quick("import", "local", "--project", "third"), 3)
    assert user.quick("import", "local", "--project", first["project"], "--json").json["data"]["new"] == [first["id"]]


def test_no_runs_and_no_context(user: User) -> None:
    assert "no runs found on local" in said(user.quick("import", "local"), 3)
    assert "context 'nowhere' not found" in said(user.quick("import", "nowhere"), 3)


def many(user: User, count: int) -> Path:
    """Create the folders of `count` finished runs; return their parent folder."""
    run = user.quick("--json", "run", "--wait", "true").json["data"]["run"]
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


def test_thousands_of_runs(user: User) -> None:
    many(user, 2500)
    done = user.quick("import", "local", "--json")
    assert done.code == 0 and len(done.json["data"]["new"]) == 2500 and done.json["data"]["known"] == 1


def test_several_requests(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that do not fit into one request are read by the next; a folder too large for any is named."""
    folder = many(user, 30)
    large = folder / ids.make(1_000_000_010, 10)
    with (large / "plan.json").open("ab") as file:
        file.write(b" " * 60_000)
    monkeypatch.setattr(listing, "BYTES", 50_000)
    done = user.quick("import", "local", "--json")
    assert done.code == 0
    assert len(done.json["data"]["new"]) == 29
    assert done.json["data"]["unreadable"] == {str(large): "its files are too large"}


def one_of_each(laptop: Laptop, site: str, ssh: Ssh) -> dict[str, str]:
    """Runs on a cluster in each state, by a name for it."""
    waiting = ("sh", "-c", PATIENT)
    made = {
        name: laptop.run(site, *words)["run"]
        for name, words in {
            "by hand": waiting,
            "cancelled": waiting,
            "running": waiting,
            "completed": ("--name", "ü", "--param", "lr=0.1", "sh", "-c", 'echo x; echo 1 > "$YURT_OUTPUTS/a"'),
            "failed": ("sh", "-c", "exit 3"),
            "killed": ("sh", "-c", "kill -KILL $$"),
            **({"timeout": ("--time", "1m", *waiting)} if os.environ.get("SLOW_TESTS") else {}),
            "held": ("--hold", *waiting),
            "queued": ("--sbatch-option", "begin=now+1hour", *waiting),
            "never started": ("--hold", *waiting),
        }.items()
    }
    runs = {name: run["id"] for name, run in made.items()}
    for name in ("by hand", "cancelled", "running"):
        laptop.starts(runs[name])
    assert laptop.quick("cancel", runs["cancelled"], runs["never started"]).code == 0
    ssh(site, f"scancel --name=yurt-{runs['by hand']}")
    over = [run for name, run in runs.items() if name not in ("running", "queued", "held")]
    assert laptop.quick("wait", *over, "--timeout", "240").code == 1
    return runs


@pytest.mark.lab
@pytest.mark.parametrize("site", ["alpha", "beta"])
def test_a_second_laptop_shows_exactly_the_same(laptop: Laptop, second_laptop: Laptop, lab: Lab, site: str) -> None:
    first, second, ssh = laptop, second_laptop, Ssh(lab)
    runs = one_of_each(first, site, ssh)
    try:
        before = shows(first, runs)
        found = {name: json.loads(text)["data"] for name, text in before.items()}
        expected = {"killed": "failed", "by hand": "cancelled", "never started": "cancelled"}
        states = {name: each["status"]["state"] for name, each in found.items()}
        assert states == {name: expected.get(name, name) for name in runs}
        done = second.quick("import", site, "--project", found["failed"]["run"]["project"], "--json")
        assert done.code == 0 and done.json["warnings"] == []
        assert set(runs.values()) <= set(done.json["data"]["new"])
        assert shows(second, runs) == before
        # From here on the second laptop can change them too.
        assert second.quick("cancel", runs["running"], runs["queued"]).code == 0
        assert second.ended(runs["running"])["state"] == first.ended(runs["running"])["state"]
        assert second.row(runs["queued"])["state"] == "cancelled"
        again = second.quick("retry", runs["failed"], "--wait")
        assert again.code == 1, "its code is on the site, and was never on this laptop"
        others = {name: run for name, run in runs.items() if name != "failed"}
        assert shows(second, others) == shows(first, others)
        project = found["completed"]["run"]["folder"].rpartition("/runs/")[0]
        ssh(site, f"chmod -R u+w {project}; rm -rf {project}")
        for each in (first, second):  # both have a copy of its logs
            gone = each.quick("show", runs["completed"], "--json").json["data"]
            assert (
                gone["on_site"] == {"there": False, "parts": {}, "files": []} and gone["status"]["state"] == "completed"
            )
            assert each.quick("logs", runs["completed"]).out == "x\n"
    finally:
        first.quick("cancel", *runs.values())


@pytest.mark.lab
def test_show_of_a_finished_run_on_an_unreachable_site(laptop: Laptop, lab: Lab) -> None:
    run = laptop.run("alpha", "sh", "-c", "echo x; exit 3")["run"]["id"]
    laptop.ended(run)
    before = laptop.quick("show", run, "--json").json
    laptop.quick("login", "--close", "alpha")
    lab.faults.cut("alpha")
    try:
        began = time.monotonic()
        after = laptop.quick("show", run, "--json")
        assert time.monotonic() - began < 60, "without a limit of its own ssh tries for two minutes"
        assert after.code == 0 and after.json["data"] == before["data"]
        assert after.json["warnings"][0].startswith("cannot query alpha: ")
        assert laptop.quick("show", run, "--cached", "--json").json["warnings"] == []
        logs = laptop.quick("logs", run)
        assert (logs.code, logs.out) == (0, "x\n") and "showing the local copy" in logs.err
    finally:
        lab.faults.heal("alpha")
