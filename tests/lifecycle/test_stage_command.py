"""Staged inputs and outputs of local runs, from the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.user import User
from yurt.testing.runs import PATIENT
from yurt.testing.waiting import eventually

YAML = """\
stage:
  inputs:
    cifar: {data}/cifar
  outputs: [checkpoints, tables]
"""


@pytest.fixture
def staged(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A user whose project stages a folder, and whose disk for staged files is private to the test."""
    data, disk = user.home / "datasets", user.home / "disk"
    (data / "cifar").mkdir(parents=True)
    (data / "cifar" / "a").write_text("one\n")
    disk.mkdir()
    monkeypatch.setenv("TMPDIR", str(disk))
    (user.project / "yurt.yaml").write_text(YAML.format(data=data))
    yield user


def ended(user: User, *words: str) -> dict[str, Any]:
    found = user.quick("run", "--wait", "--json", *words)
    entry: dict[str, Any] = found.json["data"][0] if isinstance(found.json["data"], list) else found.json["data"]
    return entry


def left(user: User) -> list[str]:
    base = user.home / "disk" / f"yurt-stage-{os.getuid()}"
    return [each.name for kind in ("copies", "runs") for each in (base / kind).glob("*")]


def test_inputs_and_outputs(staged: User) -> None:
    script = 'cat "$YURT_STAGE/cifar/a" && echo 1 > "$YURT_STAGE/checkpoints/x" && echo m > "$YURT_STAGE/m.pt"'
    results = staged.home / "results"
    entry = ended(staged, "--stage-out", f"m.pt={results}", "sh", "-c", script)
    run, status = entry["run"], entry["status"]
    assert (status["state"], status["reason"]) == ("completed", "")
    assert (Path(run["folder"]) / "outputs" / "checkpoints" / "x").read_text() == "1\n"
    assert (results / run["id"] / "m.pt").read_text() == "m\n"
    logs = staged.quick("logs", run["id"])
    assert "one" in logs.out and "output tables is empty" in logs.out + logs.err
    assert left(staged) == []
    assert json.loads((Path(run["folder"]) / "run.json").read_text())["stage"]["inputs"][0]["name"] == "cifar"
    shown = staged.quick("show", run["id"]).out
    assert "in: cifar from" in shown and "out: checkpoints to the outputs of the run" in shown
    assert not list(Path(run["folder"]).glob("stage*"))


def test_a_failure_and_its_retry(staged: User) -> None:
    entry = ended(staged, "sh", "-c", 'echo 1 > "$YURT_STAGE/tables/x"; exit 3')
    assert entry["status"]["reason"] == "exit code 3"
    assert (Path(entry["run"]["folder"]) / "outputs" / "tables" / "x").exists()
    again = staged.quick("retry", entry["run"]["id"], "--wait", "--json").json["data"][0]
    assert again["run"]["stage"] == entry["run"]["stage"]
    assert (Path(again["run"]["folder"]) / "outputs" / "tables" / "x").exists()


def test_cancelled(staged: User) -> None:
    script = f'trap "" TERM; echo 1 > "$YURT_STAGE/tables/x"; {PATIENT}'
    run = staged.quick("run", "--json", "sh", "-c", script).json["data"]["run"]
    eventually(lambda: "begun" in staged.quick("logs", run["id"]).out)
    staged.quick("cancel", run["id"], YURT_CLOCKS="grace=1")
    staged.quick("wait", run["id"])
    assert (Path(run["folder"]) / "outputs" / "tables" / "x").read_text() == "1\n"
    assert left(staged) == []


def test_the_time_limit(staged: User) -> None:
    (staged.project / "yurt.yaml").write_text("stage:\n  outputs: [tables]\n  time: 57s\n")
    entry = ended(staged, "--time", "1m", "sh", "-c", 'echo 1 > "$YURT_STAGE/tables/x"; exec sleep 100')
    assert (entry["status"]["state"], entry["status"]["reason"]) == ("timeout", "it reached its time limit")
    assert entry["status"]["seconds"] < 30
    assert (Path(entry["run"]["folder"]) / "outputs" / "tables" / "x").exists()


def test_a_restart_finds_its_outputs(staged: User) -> None:
    script = 'cat "$YURT_STAGE/tables/x" && exit 0; echo first > "$YURT_STAGE/tables/x"; exit 85'
    entry = ended(staged, "--requeue", "--stage-out", f"tables={staged.home}/kept", "sh", "-c", script)
    assert (entry["status"]["state"], entry["status"]["restarts"]) == ("completed", 1)
    assert "first" in staged.quick("logs", entry["run"]["id"]).out


def test_an_input_that_is_missing(staged: User) -> None:
    entry = ended(staged, "--stage", f"more={staged.home}/none", "sh", "-c", "echo started")
    assert entry["status"]["state"] == "failed"
    assert entry["status"]["reason"] == f"input more: {staged.home}/none does not exist"
    assert "started" not in staged.quick("logs", entry["run"]["id"]).out and left(staged) == []
    assert "help:  check the name with `yurt data ls PLACE`" in staged.quick("why", entry["run"]["id"]).out


def test_outputs_that_cannot_be_copied_fail_the_run(staged: User) -> None:
    (staged.home / "file").write_text("")
    script = 'echo 1 > "$YURT_STAGE/m.pt"'
    entry = ended(staged, "--stage-out", f"m.pt={staged.home}/file", "sh", "-c", script)
    assert (entry["status"]["state"], entry["status"]["exit_code"]) == ("failed", 74)
    reason = entry["status"]["reason"]
    assert reason.startswith(f"output m.pt (2 B) could not be copied to {staged.home}/file: ")
    assert reason.endswith("; it is in the outputs of the run instead")
    why = staged.quick("why", entry["run"]["id"]).out
    assert f"cause: {reason}" in why and "help:  your command succeeded" in why and "log:" not in why
    assert (Path(entry["run"]["folder"]) / "outputs" / "m.pt").read_text() == "1\n"


def test_an_output_in_the_folder_of_yurt(staged: User) -> None:
    for place in ("data", "data/projects/x"):
        found = staged.quick("run", "--stage-out", f"o={staged.home}/{place}", "true")
        assert found.code == 2 and "of output o is in yurt's own folder" in found.err
    assert staged.quick("run", "--dry-run", "--stage-out", f"o={staged.home}/database", "true").code == 0


def test_the_folder_of_the_run_is_shown(staged: User) -> None:
    results = staged.home / "results"
    entry = ended(staged, "--stage-out", f"o={results}", "true")
    assert f"out: o to {results}/{entry['run']['id']}\n" in staged.quick("show", entry["run"]["id"]).out


def test_a_sweep(staged: User) -> None:
    script = 'cat "$YURT_STAGE/cifar/a" && echo "$YURT_TASK_INDEX" > "$YURT_STAGE/tables/x"'
    results = staged.home / "results"
    words = ("--grid", "lr=1,2,3", "--stage-out", f"tables={results}", "sh", "-c", script)
    done = staged.quick("run", "--wait", "-q", *words)
    assert done.code == 0
    texts = {each.parent.parent.name.partition(".")[2]: each.read_text() for each in results.glob("*/tables/x")}
    assert texts == {"0": "0\n", "1": "1\n", "2": "2\n"}
    eventually(lambda: left(staged) == [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stage", "a b=/x"], "--stage: 'a b' is not a valid name: use letters"),
        (["--stage", "a"], "--stage: 'a' is not NAME=PLACE"),
        (["--stage", "a=/x", "--stage-out", "a"], "--stage-out: the name 'a' is given twice"),
        (["--stage", "a=datasets/x"], "stage: 'datasets/x' of a is neither TIER:PATH nor an absolute path"),
        (["--stage", "a=nowhere:x"], "local has no storage tier 'nowhere'; it has: home"),
        (["--stage", "a=alpha:home:x"], "stage: 'alpha:home:x' of a is on alpha, but the run is on local"),
        (["--stage", "a=home:../x"], "contains '..'"),
    ],
)
def test_mistakes_submit_nothing(user: User, words: list[str], said: str) -> None:
    done = user.quick("run", *words, "true")
    assert done.code in (2, 3) and said in done.err and "Traceback" not in done.err
    assert user.quick("ps", "--all", "--json").json["data"] == []


def test_time_must_be_shorter_than_the_limit(user: User) -> None:
    (user.project / "yurt.yaml").write_text("stage: {outputs: [a], time: 2m}\n")
    done = user.quick("run", "--time", "1m", "true")
    assert done.code == 2 and "stage.time (120 s) must be shorter than the time limit (60 s)" in done.err


def test_dry_run(staged: User) -> None:
    shown = staged.quick("run", "--dry-run", "true")
    assert shown.code == 0 and f"# stage in: cifar from {staged.home}/datasets/cifar" in shown.out
