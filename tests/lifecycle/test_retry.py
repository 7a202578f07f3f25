"""retry: the new run is linked to the old one; nothing is submitted after an error."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pexpect
import pytest

from tests.lifecycle.test_run import CONTEXTS, FACTS, NOWHERE
from tests.user import User, said
from yurt.config import facts as kept
from yurt.store import Store
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

FAILING = 'cat train.py; echo "$SEED $YURT_RUN_ID $*"; exit 3'


def failed(user: User, *options: str) -> dict[str, Any]:
    words = ("--json", "run", "--wait", "--var", "SEED=7", *options, "sh", "-c", FAILING, "sh", "--", "--lr", "0.1")
    done = user.quick(*words)
    assert done.code == 1, done
    run: dict[str, Any] = done.json["data"]["run"]
    return run


def shown(user: User, run: str) -> dict[str, Any]:
    data: dict[str, Any] = user.quick("show", run, "--json").json["data"]
    return data


def test_same_code_parameters_and_settings(user: User) -> None:
    old = failed(user, "--name", "first", "--tag", "t", "--note", "n", "--time", "5m")
    (user.project / "train.py").write_text("print('another')\n")
    done = user.quick("retry", old["id"][:9], "--json")
    assert (done.code, done.json["kind"], len(done.json["data"])) == (0, "runs-retried", 1)
    new = done.json["data"][0]["run"]
    own = ("id", "folder", "created", "retry_of")
    assert {key: new[key] for key in new if key not in own} == {key: old[key] for key in old if key not in own}
    assert new["retry_of"] == old["id"] and new["folder"].endswith(new["id"]) and new["created"] > old["created"]
    assert user.quick("wait", new["id"]).code == 1
    assert user.quick("logs", new["id"]).out == f"print('trained')\n7 {new['id']} --lr 0.1\n"
    assert shown(user, old["id"])["retried_as"] == [new["id"]]
    assert shown(user, new["id"])["run"]["retry_of"] == old["id"]
    assert ["retried", "as", new["id"]] in [line.split() for line in user.quick("show", old["id"]).out.splitlines()]
    assert ["retry", "of", old["id"]] in [line.split() for line in user.quick("show", new["id"]).out.splitlines()]


def test_retry_refreshes_the_state_first(user: User) -> None:
    """The index still says queued; retry queries the site itself."""
    runs = [user.quick("--json", "run", "sh", "-c", PATIENT + "; exit 3").json["data"]["run"] for _each in range(2)]
    for run in runs:
        Path(run["folder"], "go").touch()
        eventually(Path(run["folder"], "exit.json").exists)
    assert [row["state"] for row in user.quick("ps", "--cached", "--json").json["data"]] == ["queued", "queued"]
    assert user.quick("retry", runs[0]["id"]).code == 0
    third = user.quick("--json", "run", "sh", "-c", PATIENT + "; exit 3").json["data"]["run"]
    Path(third["folder"], "go").touch()
    eventually(Path(third["folder"], "exit.json").exists)
    retried = user.quick("retry", "--failed", "--yes", "--json").json["data"]
    assert [each["run"]["retry_of"] for each in retried] == [runs[1]["id"], third["id"]]


def test_all_failed_runs_are_retried_once(user: User) -> None:
    first, second = failed(user), failed(user)
    for ended in ("true", "exit 0"):
        assert user.quick("run", "--wait", "sh", "-c", ended).code == 0
    running = user.quick("--json", "run", "sh", "-c", PATIENT).json["data"]["run"]["id"]
    assert user.quick("cancel", running).code == 0
    user.quick("wait", running)
    elsewhere = user.home / "other"
    elsewhere.mkdir()
    assert user("retry", "--failed", cwd=elsewhere).out == "no failed runs to retry in this project\n"
    assert said(user.quick("retry", "--failed", "--context", "nope"), 3) == "context 'nope' not found"
    done = user.quick("retry", "--failed", "--yes", "-f")
    assert done.code == 1
    assert [line.rpartition(" ")[2] for line in done.out.splitlines() if "retry of" in line] == [
        first["id"],
        second["id"],
    ]
    assert done.out.count("--lr 0.1") == 2, "the output of both is shown"
    again = user.quick("retry", "--failed", "--yes", "--json").json["data"]
    assert {each["run"]["retry_of"] for each in again} & {first["id"], second["id"]} == set()
    assert len(again) == 2, "the retries failed too, and were not retried"


def test_an_error_submits_nothing(user: User) -> None:
    old = failed(user)
    running = user.quick("--json", "run", "sh", "-c", PATIENT).json["data"]["run"]["id"]
    eventually(lambda: shown(user, running)["status"]["state"] == "running")

    def runs() -> list[str]:
        known = [row["id"] for row in user.quick("ps", "--cached", "--json").json["data"]]
        return [*known, *sorted(str(each) for each in user.home.glob("data/projects/*/runs/*"))]

    before = runs()
    assert said(user.quick("retry", old["id"], running), 5) == f"run {running} has not finished: it is running"
    assert said(user.quick("retry", "zzzzz"), 3) == "run 'zzzzz' not found"
    assert said(user.quick("retry"), 2) == "no runs given"
    assert said(user.quick("retry", old["id"], "--time", "soon"), 2).startswith("--time must be a positive duration")
    assert said(user.quick("retry", old["id"], "--mem", "5X"), 2).startswith("--mem must be a memory size")
    assert (
        user.quick(
            "context", "add", "alpha", "--slurm-url", "alice@alpha.example", "--storage-dir", "/x", "--no-probe"
        ).code
        == 0
    )
    assert "a retry uses the same context" in said(user.quick("retry", old["id"], "--context", "alpha"), 2)
    with Store(str(user.home / "data" / "yurt.db")) as index:
        index._db.execute("DELETE FROM plans")
    assert "has only part of its record" in said(user.quick("retry", old["id"]), 3)
    assert runs() == before


def test_code_that_no_longer_exists(user: User) -> None:
    old = failed(user)
    shutil.rmtree(user.home / "data" / "code")
    assert user.quick("retry", old["id"], "--wait").code == 1, "its site still has it"
    project = Path(old["folder"]).parent.parent
    for folder in (project / "snapshots", project / "code.git"):
        os.system(f"chmod -R u+w '{folder}'")
        shutil.rmtree(folder)
    before = user.contents()
    answer = user.quick("retry", old["id"])
    tree = old["code"]["tree"][:12]
    assert said(answer, 5) == f"snapshot {tree} is neither on the site nor on this machine"
    assert user.contents() == before


def test_other_limits_and_the_sites_facts(user: User) -> None:
    """The site is unreachable; the plan shows what would be submitted."""
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environment.items():
            patch.setenv(name, value)
        kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    script = user.project / "job.sbatch"
    script.write_text("#!/bin/sh\n#SBATCH --time=7\ntrue\n")
    words = ("--json", "--context", "big", "run", "--requeue", "--sbatch-option", "mem-per-cpu=1G")
    old = user.quick(*words, "job.sbatch").json["data"]["run"]
    assert user.quick("cancel", old["id"]).code == 0
    assert "exceeds the maximum of partition 'main', 1d" in said(user.quick("retry", old["id"], "--time", "2d"), 5)
    assert "no node of partition 'main' has 16G of memory" in said(user.quick("retry", old["id"], "--mem", "16G"), 5)
    new = user.quick("retry", old["id"], "--time", "4h", "--mem", "2G", "--json").json["data"][0]["run"]
    index = Store(str(user.home / "data" / "yurt.db"))
    before, after = index.plan(old["id"]), index.plan(new["id"])
    assert before is not None and after is not None
    assert (before.limit, before.run.restart_policy.signal_before, before.native_options) == (
        420,
        105,
        {"mem-per-cpu": "1G", "constraint": "fast"},
    )
    assert (after.limit, after.run.restart_policy.signal_before, after.native_options) == (
        14400,
        120,
        {"constraint": "fast"},
    )
    assert (after.run.resources.minutes, after.run.resources.memory_mb) == (240, 2048)
    assert {"key": "time", "value": "4h", "source": "flag"} in new["settings"]
    resources = next(each for each in new["settings"] if each["key"] == "resources")
    assert resources == {"key": "resources", "value": {"cpu": 2, "mem": "2G"}, "source": "flag"}
    assert json.loads(msgspec.json.encode(after.run)) == new


def test_other_gpus_and_nodes(user: User) -> None:
    """The site is unreachable; the plan shows what would be submitted."""
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environment.items():
            patch.setenv(name, value)
        kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    words = ("--exclude-node", "n1", "--sbatch-option", "exclude=n4", "--nodelist", "n[2-3]", "true")
    old = user.quick("--json", "--context", "big", "run", *words).json["data"]["run"]
    assert user.quick("cancel", old["id"]).code == 0
    required = said(user.quick("retry", old["id"], "--exclude-node", "n3"), 2)
    assert required == f"run {old['id']} requires node n3 (--nodelist n[2-3]), which --exclude-node excludes"
    assert said(user.quick("retry", old["id"], "--gpus", "two:x"), 2).startswith("--gpus must be a number of GPUs")
    assert said(user.quick("retry", old["id"], "--gpus", "9"), 5).startswith("big: ")
    new = user.quick("retry", old["id"], "--exclude-node", "n5", "--json").json["data"][0]["run"]
    assert new["resources"]["exclude_nodes"] == "n1,n4,n5" and new["resources"]["nodelist"] == "n[2-3]"
    assert {"key": "exclude_nodes", "value": "n1,n4,n5", "source": "flag"} in new["settings"]
    with Store(str(user.home / "data" / "yurt.db")) as index:
        made = index.plan(new["id"])
    assert made is not None and "exclude" not in made.native_options
    here = user.quick("run", "--wait", "--json", "true").json["data"]["run"]["id"]
    assert "has no nodes" in said(user.quick("retry", here, "--exclude-node", "n1"), 2)
    seen = ("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}")
    assert user.quick("run", "--wait", *seen, YURT_LOCAL_GPUS="2").code == 0
    assert user.quick("retry", "-", "--wait", "--gpus", "2", YURT_LOCAL_GPUS="2").code == 0
    assert user.quick("logs", "-").out == "0,1\n"


def test_another_environment(user: User) -> None:
    activate = user.home / "v" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f"export VIRTUAL_ENV={user.home}/v\n")
    (activate.parent / "python").symlink_to(sys.executable)
    old = user.quick("run", "--wait", "--json", "--venv", "/no/where", "sh", "-c", "echo $VIRTUAL_ENV")
    assert old.code == 1 and "virtual environment /no/where not found" in old.json["data"]["status"]["reason"]
    done = user.quick("retry", "-", "--wait", "--venv", "~/v", HOME=str(user.home))
    assert done.code == 0, done
    assert user.quick("logs", "-").out == f"{user.home}/v\n"
    assert user.quick("retry", "-", "--wait", "--venv", "").code == 0
    assert user.quick("logs", "-").out.strip() != f"{user.home}/v"


def test_another_environment_on_a_site(user: User) -> None:
    (user.home / "config").mkdir()
    (user.home / "config" / "contexts.yaml").write_text(CONTEXTS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in user.environment.items():
            patch.setenv(name, value)
        kept.save(NOWHERE, msgspec.structs.replace(FACTS, probed_at=time.time()))
    words = ("--json", "--context", "big", "run", "--conda", "old", "--container", "/old.sif", "--module", "m")
    old = user.quick(*words, "true").json["data"]["run"]
    assert user.quick("cancel", old["id"]).code == 0

    def retried(*words: str) -> tuple[list[str], dict[str, str], list[str]]:
        done = user.quick("retry", old["id"], "--json", *words).json
        plan = Store(str(user.home / "data" / "yurt.db")).plan(done["data"][0]["run"]["id"])
        assert plan is not None and plan.setup.modules == ["m"]
        settings = {each.key: each.value for each in plan.run.settings if each.key in ("venv", "conda", "container")}
        return [plan.setup.venv, plan.setup.conda, plan.setup.container], settings, done["warnings"]

    same = {"conda": "old", "container": "/old.sif"}
    assert retried()[:2] == (["", "old", "/old.sif"], same)
    setup, settings, _warnings = retried("--venv", "~/v")
    assert (setup, settings) == (["/home/alice/v", "", "/old.sif"], {"venv": "~/v", "container": "/old.sif"})
    assert retried("--conda", "new")[0] == ["", "new", "/old.sif"]
    assert retried("--container", "$SCRATCH/new.sif")[0] == ["", "old", "/scratch/alice/new.sif"]
    assert retried("--container", "")[:2] == (["", "old", ""], {"conda": "old"})
    setup, _settings, warnings = retried("--venv", f"{Path.home()}/v")
    assert setup[0] == "/home/alice/v" and "is in the home folder of this machine" in " ".join(warnings)
    wrong = user.quick("retry", old["id"], "--venv", "$NOWHERE/v")
    assert said(wrong, 2) == "venv of context 'big' uses $NOWHERE, which is not set on the site"


def test_code_now_with_old_parameters(user: User) -> None:
    old = failed(user)
    (user.project / "train.py").write_text("print('another')\n")
    new = user.quick("retry", old["id"], "--code", "now", "--json").json["data"][0]["run"]
    assert (new["params"], new["command"], new["retry_of"]) == (old["params"], old["command"], old["id"])
    assert new["code"]["tree"] != old["code"]["tree"]
    user.quick("wait", new["id"])
    assert user.quick("logs", new["id"]).out == f"print('another')\n7 {new['id']} --lr 0.1\n"
    same = user.quick("retry", new["id"], "--json").json["data"][0]["run"]
    assert same["code"] == new["code"]


def test_code_now_outside_the_project(user: User) -> None:
    old = failed(user)
    elsewhere = user.home / "other"
    elsewhere.mkdir()
    answer = user("retry", old["id"], "--code", "now", cwd=elsewhere)
    assert said(answer, 2).startswith(f"run {old['id']} is of the project '{old['project']}', not of the working")
    assert shown(user, old["id"])["retried_as"] == []


def test_failed_without_a_run_asks_first(user: User) -> None:
    old = failed(user, "--name", "first")
    asked = user.quick("retry", "--failed")
    assert asked.code == 2 and old["id"] in asked.out and "first" in asked.out
    assert "nothing was submitted; run the command again with `--yes`" in asked.err
    listed = user.quick("retry", "--failed", "--dry-run", "--json")
    assert (listed.code, listed.json["kind"]) == (0, "retry-candidates")
    assert [each["id"] for each in listed.json["data"]] == [old["id"]]
    assert said(user.quick("retry", "--failed", "--dry-run", "--yes"), 2) == "--dry-run and --yes cannot be combined"
    assert shown(user, old["id"])["retried_as"] == []
    for answer, retried in (("n", 0), ("y", 1)):
        terminal = user.spawn("retry", "--failed", cwd=user.project)
        terminal.expect("retry 1 run\\?")
        terminal.sendline(answer)
        terminal.expect(pexpect.EOF)
        assert len(shown(user, old["id"])["retried_as"]) == retried
