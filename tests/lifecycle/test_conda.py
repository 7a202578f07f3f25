"""Runs in a conda environment, with a real conda on alpha."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

pytestmark = pytest.mark.lab

ENVIRONMENT = "name: study\ndependencies: [python, tiny, hello]\n"


@pytest.fixture(scope="module")
def ssh(lab: Lab, conda: Callable[[str], None]) -> Ssh:
    """ssh to a cluster with conda and the environment `study`."""
    conda("alpha")
    found = Ssh(lab)
    found("alpha", f"printf '{ENVIRONMENT}' > environment.yml && miniforge3/bin/conda env create -f environment.yml")
    return found


def test_a_command_in_an_environment(laptop: Laptop, ssh: Ssh) -> None:
    script = "hello; command -v python; python -c 'import tiny; print(tiny.x)'"
    run = laptop.run("alpha", "--conda", "study", "sh", "-c", script)["run"]["id"]
    assert laptop.ended(run)["state"] == "completed", laptop.quick("logs", run).out
    prefix = "/home/alice/miniforge3/envs/study"
    assert laptop.quick("logs", run).out.splitlines() == [f"hello from {prefix} on", f"{prefix}/bin/python", "1"]


def test_a_missing_environment_is_the_reason(laptop: Laptop, ssh: Ssh) -> None:
    run = laptop.run("alpha", "--conda", "none-such", "true")["run"]["id"]
    assert laptop.ended(run)["reason"] == "conda environment none-such not found, or not usable"


def test_yurt_builds_an_environment_of_conda(laptop: Laptop, ssh: Ssh) -> None:
    (laptop.project / "environment.yml").write_text(ENVIRONMENT)
    (laptop.project / "train.py").write_text("import sys, tiny\nprint(tiny.x, sys.prefix)\n")
    first = laptop.run("alpha", "train.py")
    assert first["run"]["env"]["title"] == "environment.yml" and first["status"]["building"]
    ended = laptop.ended(first["run"]["id"])
    assert ended["state"] == "completed", ended
    one, prefix = laptop.quick("logs", first["run"]["id"]).out.split()
    assert one == "1" and prefix.startswith(f"{ended['env']['folder']}/env-")
    again = laptop.run("alpha", "--env-place", "tmpdir", "train.py")
    assert not again["status"]["building"] and laptop.ended(again["run"]["id"])["state"] == "completed"
    for each in (first, again):
        shown = laptop.quick("show", each["run"]["id"], "--json").json["data"]
        assert shown["packages"].keys() == {"python", "tiny", "hello"}, shown
    assert any("conda environments are used from scratch" in each for each in again["warnings"]), again["warnings"]
    (laptop.project / "environment.yml").write_text(ENVIRONMENT.replace("tiny", "none-such"))
    failed = laptop.ended(laptop.run("alpha", "train.py")["run"]["id"])
    assert failed["state"] == "failed" and "its environment was not built" in failed["reason"], failed
    assert "none-such" in laptop("--context", "alpha", "env", "build").err
