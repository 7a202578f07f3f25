"""prune removes environments that nobody has used for a while, and never one that a run of any machine needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.calls import Called
from tests.environments import ENVS, WHEELS
from tests.envs.test_envs import SCRIPT
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.backends import scripts
from yurt.backends.shell.env_answers import read_unused
from yurt.model.env import UnusedEnv


def test_the_output_of_the_site() -> None:
    text = 'env 0123456789abcdef 12 34 1700000000.5 {"a": "b c"}\nreplaced fedcba9876543210 1 2 3 \nwheels 2 9\nnoise\n'
    assert read_unused(text) == [
        UnusedEnv(
            what="environment",
            address="0123456789abcdef",
            files=12,
            kilobytes=34,
            used=1700000000.5,
            definition=b'{"a": "b c"}',
        ),
        UnusedEnv(what="replaced", address="fedcba9876543210", files=1, kilobytes=2, used=3.0),
        UnusedEnv(what="wheels", files=2, kilobytes=9),
    ]


def test_without_an_answer_of_the_queue_nothing_is_removed(tmp_path: Path) -> None:
    old, half = "0" * 16, "1" * 16
    base, programs = tmp_path / "yurt", tmp_path / "bin"
    for folder in (base / "envs" / old, base / "envs" / f".going.{half}"):
        folder.mkdir(parents=True)
        for name in ("lock", "used", "definition.json"):
            (folder / name).write_text("{}")
    programs.mkdir()
    squeue = programs / "squeue"

    def prune(queue: str) -> subprocess.CompletedProcess[str]:
        squeue.write_text(f"#!/bin/sh\n{queue}\n")
        squeue.chmod(0o755)
        text = scripts.plain_slurm() + scripts.text("env_state.sh", "job") + scripts.text("env_prune.sh")
        argv = ["sh", "-c", text, "sh", str(base), str(base), "0", "", f"env:{old}"]
        path = f"{programs}:{os.environ['PATH']}"
        return subprocess.run(argv, env={"PATH": path}, capture_output=True, text=True, check=False)

    done = prune("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    assert (done.returncode, done.stdout) == (1, "") and "Unable to contact" in done.stderr
    assert len(list((base / "envs" / old).iterdir())) == 3
    for said in ("true", "echo slurm_load_jobs error"):
        done = prune(said)
        assert (done.returncode, done.stdout) == (1, "") and "squeue printed no table" in done.stderr
    assert prune(f"echo NAME; echo yurt-env-{old}").stdout == "", "a job is building it"
    assert prune("echo NAME").stdout.startswith(f"env {old} ")
    left = sorted(str(path.relative_to(base / "envs")) for path in (base / "envs").rglob("*") if path.is_file())
    assert left == [f"{old}/lock", f"{half}/lock"], "a removal that was killed is finished"


@pytest.fixture
def ssh(no_environments: Ssh) -> Ssh:
    return no_environments


def declare(laptop: Laptop, version: str) -> None:
    (laptop.project / "requirements.txt").write_text(f"six=={version}\n")
    (laptop.project / "train.py").write_text(SCRIPT)


def unused(done: Called) -> list[tuple[str, str]]:
    assert done.code in (0, 2), done
    return sorted((each["what"], each["address"]) for each in done.json["data"]["environments"])


@pytest.mark.lab
@pytest.mark.xdist_group("envs")
@pytest.mark.slow
def test_environments_that_nobody_used(laptop: Laptop, second_laptop: Laptop, ssh: Ssh) -> None:
    def build(each: Laptop, version: str) -> str:
        declare(each, version)
        done = each("--context", "beta", "env", "build", "--json")
        assert done.code == 0, done
        address: str = done.json["data"]["address"]
        return address

    def words(command: str) -> list[str]:
        return ssh("beta", f"echo @; {command}").partition("@")[2].split()  # after the banner of the login node

    def prune(*options: str) -> Called:
        return laptop("--context", "beta", "--json", "prune", *options)

    old, queued = (build(laptop, version) for version in ("1.16.0", "1.15.0"))
    declare(second_laptop, "1.15.0")
    held: dict[str, Any] = second_laptop.run("beta", "--hold", "train.py")["run"]
    assert held["env"]["address"] == queued
    ssh("beta", f"touch -d '40 days ago' {ENVS}/{old}/* {ENVS}/{queued}/* {WHEELS}/*/*")

    assert unused(prune("--dry-run")) == [("environment", old), ("wheels", "")]
    asked = prune()
    assert asked.code == 2 and "--yes" in asked.json["warnings"][-1], "there is no terminal to ask on"
    assert words(f"ls {ENVS}/{old}/ready")
    shown = laptop("--context", "beta", "prune", "--dry-run").out
    assert "would remove: unused environments" in shown and f"{old}  " in shown and "requirements.txt" in shown, shown

    done = prune("--yes")
    assert unused(done) == [("environment", old), ("wheels", "")] and done.json["data"]["done"]
    assert words(f"ls -A {ENVS}/{old}") == ["lock"], "it is built again with the same packages"
    assert len(words(f"ls {WHEELS}/*")) == 1, "the other environment lists it"
    assert {each["address"] for each in laptop("env", "list", "beta", "--json").json["data"]} == {queued}
    assert unused(prune("--yes")) == []

    second_laptop("cancel", held["id"])
    copy = f"{ENVS}/{queued}/env-00000000"
    ssh("beta", f"mkdir {copy}; echo 'env-00000000 3 10' > {ENVS}/{queued}/retired")
    ssh("beta", f"touch -d '20 days ago' {ENVS}/{queued}/*")
    assert unused(prune("--yes")) == [("replaced", queued)]
    left = words(f"cd {ENVS}/{queued}; ls -d env-*; cut -d ' ' -f 1 ready")
    assert len(left) == 2 and left[0] == left[1], "only the one that is ready is left"
    assert unused(prune("--dry-run", "--older-than", "10d")) == [("environment", queued), ("wheels", "")]
