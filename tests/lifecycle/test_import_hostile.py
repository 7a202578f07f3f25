"""Records of a hostile site: what they cannot name on this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.user import User
from yurt.contexts.project import code_folder
from yurt.lifecycle import import_
from yurt.lifecycle.plan.code import Commit
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.files import Gathered
from yurt.model.run import Code, Plan, Run
from yurt.model.verdict import read_sweep_verdict
from yurt.snapshot import differ
from yurt.store import Found

RUN = "1nfkaf7-c1w10"
FOLDER = f"/scratch/yurt/projects/p-0000/runs/{RUN}"
TREE = "1" * 40
WHOLE = Run(
    id=RUN,
    context="alpha",
    context_type="slurm",
    project="p-0000",
    source="/home/alice/p",
    created=1.0,
    command=["true"],
    folder=FOLDER,
    code=Code(tree=TREE),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "YURT_CONFIG_HOME", "YURT_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def read(run: Run, plan: Plan | None = None, status: bytes = b"") -> Found | str | None:
    recorded = msgspec.json.encode(plan) if plan else b""
    files = {layout.RUN: msgspec.json.encode(run), layout.PLAN: recorded, layout.STATUS: status}
    context = Context(name="alpha", type="slurm", slurm_url="alice@login.invalid")
    return import_._Reader(context).read(f"{FOLDER.rpartition('/')[0]}/{run.id}", Gathered(files))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": ".."}, "invalid id"),
        ({"id": "-F"}, "invalid id"),
        ({"project": "../../../.ssh"}, "invalid project"),
        ({"project": ""}, "invalid project"),
        ({"project": "--output=x"}, "invalid project"),
        ({"name": "-x"}, "invalid name"),
        ({"name": "a\x1b[2J"}, "invalid name"),
        ({"code": Code(tree="--output=/tmp/x")}, "invalid snapshot"),
        ({"code": Code(tree="HEAD")}, "invalid snapshot"),
        ({"created": 1e30}, "invalid time of creation"),
        ({"created": -1e30}, "invalid time of creation"),
    ],
)
def test_a_record_names_no_other_folder_and_no_option(home: Path, change: dict[str, object], why: str) -> None:
    found = read(msgspec.structs.replace(WHOLE, **change))
    assert isinstance(found, str) and why in found
    assert isinstance(read(WHOLE), Found)


def repository_that_runs(home: Path) -> tuple[Path, Path]:
    """Return a repository whose configuration runs a command when an object is missing, and the file that it makes."""
    evil, ran = home / "results" / "evil", home / "ran"
    subprocess.run(["git", "init", "-q", "--bare", evil], check=True)
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(evil),
        "remote.origin.uploadpack": f"touch '{ran}'; false",
    }.items():
        subprocess.run(["git", "-C", evil, "config", name, value], check=True)
    return evil, ran


def test_a_record_names_no_git_folder(home: Path) -> None:
    """git runs commands that are configured in a repository, such as one among fetched results."""
    evil, ran = repository_that_runs(home)
    plan = Plan(run=WHOLE, project_folder="/x", store=str(evil), words=[b"true"])
    found = read(WHOLE, plan)
    assert isinstance(found, Found) and found.plan is not None
    assert found.plan.store == str(code_folder("p-0000")) == f"{home}/code/p-0000.git"
    assert not differ.is_here(Path(found.plan.store), TREE) and not ran.exists()
    assert not differ.is_here(evil, TREE) and not ran.exists(), "nor in one that is named"
    subprocess.run(["git", "-C", evil, "cat-file", "-e", TREE], check=False, stderr=subprocess.DEVNULL)
    assert ran.exists(), "this git runs no such command, so the test shows nothing"


def test_the_commit_of_fetched_results_runs_nothing(home: Path) -> None:
    """`yurt run` in a folder of fetched results asks git for its commit."""
    evil, ran = repository_that_runs(home)
    (evil / "refs" / "heads" / "main").write_text(f"{TREE}\n")
    (evil / "HEAD").write_text("ref: refs/heads/main\n")
    subprocess.run(["git", "-C", evil, "config", "core.bare", "false"], check=True)
    outputs = home / "outputs"
    outputs.mkdir()
    evil.rename(outputs / ".git")
    assert Commit(outputs).answer() == ("", "", "") and not ran.exists()
    subprocess.run(["git", "rev-parse", "HEAD", "HEAD:./"], cwd=outputs, check=False, capture_output=True)
    assert ran.exists(), "this git runs no such command, so the test shows nothing"


def test_the_git_folder_of_a_record_of_an_earlier_version_is_not_used(user: User) -> None:
    """`yurt diff` looks for code only where this machine keeps it."""
    first = user.quick("run", "--json", "--wait", "true").json["data"]["run"]
    (user.project / "more").touch()
    second = user.quick("run", "--json", "--wait", "true").json["data"]["run"]
    code = user.home / "data" / "code"
    assert "more" in user.quick("diff", first["id"], second["id"]).out
    shutil.move(code, user.project / "code")
    gone = user.quick("diff", first["id"], second["id"])
    assert gone.code == 0 and "is no longer on this machine" in gone.out


@pytest.mark.parametrize(
    "status",
    [
        b"\xff",
        b'{"state":' + b"[" * 5000,
        b'{"state":"failed","ended":1e300}',
        b'{"exit_code":' + b"9" * 99,
    ],
)
def test_a_damaged_status_is_no_status(home: Path, status: bytes) -> None:
    found = read(WHOLE, status=status)
    assert isinstance(found, Found) and found.status.state == "queued"


@pytest.mark.parametrize("numbers", ["0-99999999999", "0-9999999,20000000-29999999", "1-x", "9" * 5000])
def test_the_tasks_of_a_verdict_fit_into_memory(numbers: str) -> None:
    for key in ("tasks", "natives"):
        part = {numbers: {"state": "cancelled"}} if key == "tasks" else {"FAILED": numbers}
        assert read_sweep_verdict(msgspec.json.encode({"state": "cancelled", key: part})) is None
    assert read_sweep_verdict(b'{"state":"cancelled","natives":{"FAILED":"0-3"}}') is not None
