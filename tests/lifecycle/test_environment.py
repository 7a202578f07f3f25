"""A run whose environment cannot be set up: its reason says what is missing, and its command does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

pytestmark = pytest.mark.lab


@pytest.fixture
def ssh(lab: Lab) -> Ssh:
    return Ssh(lab)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--module", "cuda/13"], "module cuda/13 not found"),
        (["--module", "cuda/12.1", "--module", 'no"\\such é'], "module no'/such ?? not found"),
        (["--venv", "/no/where"], "virtual environment /no/where not found"),
        (["--venv", "/usr"], "/usr is not a virtual environment: it has no bin/activate"),
        (["--conda", "torch"], "command 'conda' not found on this node"),
        (["--container", "/no/image.sif"], "neither apptainer nor singularity found on this node"),
    ],
    ids=["module", "odd name", "venv", "no venv", "conda", "container"],
)
def test_the_reason(laptop: Laptop, options: list[str], reason: str) -> None:
    run = laptop.run("alpha", *options, "sh", "-c", "echo started")["run"]
    row = laptop.ended(run["id"])
    assert (row["state"], row["exit_code"]) == ("failed", 78)
    assert row["reason"].replace("?", " ") == reason.replace("?", " ")
    assert "started" not in laptop.quick("logs", run["id"]).out


def test_a_path_that_the_shell_of_this_machine_expanded(laptop: Laptop, ssh: Ssh) -> None:
    ssh("alpha", "test -d ~/torch || python3 -m venv --without-pip ~/torch")
    for venv in (f"{Path.home()}/torch", "~/torch"):
        done = laptop.run("alpha", "--venv", venv, "sh", "-c", "echo $VIRTUAL_ENV")
        run = done["run"]["id"]
        assert laptop.ended(run)["state"] == "completed" and laptop.quick("logs", run).out == "/home/alice/torch\n"
        about = f"venv {venv} is in the home folder of this machine; using /home/alice/torch on alpha"
        assert [each.partition(" (")[0] for each in done["warnings"]] == [about] * (venv[0] != "~")


@pytest.mark.parametrize("context", ["alpha", "beta"])
def test_of_a_task(laptop: Laptop, context: str) -> None:
    run = laptop.run(context, "--grid", "n=1,2", "--module", "cuda/13", "true")["run"]["id"]
    assert laptop.ended(run)["state"] == "failed"
    status = laptop.quick("show", f"{run}.1", "--json").json["data"]["status"]
    assert status["reason"] == "module cuda/13 not found"


def test_a_command_that_exits_with_the_same_code(laptop: Laptop) -> None:
    run = laptop.run("alpha", "sh", "-c", "exit 78")["run"]["id"]
    assert laptop.ended(run)["reason"] == "exit code 78"
