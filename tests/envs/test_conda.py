"""Runs in a conda environment, with a real conda on alpha."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests import envs_conda
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

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


@pytest.mark.slow
def test_yurt_builds_an_environment_of_conda(laptop: Laptop, ssh: Ssh) -> None:
    (laptop.project / "environment.yml").write_text(ENVIRONMENT)
    (laptop.project / "train.py").write_text(
        "import os, sys, tiny\nprint(tiny.x, sys.prefix, os.environ['PYTHONNOUSERSITE'])\n"
    )
    first = laptop.run("alpha", "train.py")
    assert first["run"]["env"]["title"] == "environment.yml" and first["status"]["building"]
    ended = laptop.ended(first["run"]["id"])
    assert ended["state"] == "completed", ended
    one, prefix, alone = laptop.quick("logs", first["run"]["id"]).out.split()
    assert one == alone == "1" and prefix.startswith(f"{ended['env']['folder']}/env-")
    assert ssh("alpha", f"find {prefix} -type d -perm -200").split() == [], "it is read-only"
    again = laptop.run("alpha", "--env-place", "tmpdir", "train.py")
    assert not again["status"]["building"] and laptop.ended(again["run"]["id"])["state"] == "completed"
    for each in (first, again):
        shown = laptop.quick("show", each["run"]["id"], "--json").json["data"]
        assert shown["packages"].keys() == {"python", "tiny", "hello"}, shown
    assert any("conda environments stay in scratch" in each for each in again["warnings"]), again["warnings"]
    (laptop.project / "environment.yml").write_text(ENVIRONMENT.replace("tiny", "none-such"))
    failed = laptop.ended(laptop.run("alpha", "train.py")["run"]["id"])
    assert failed["state"] == "failed" and "its environment was not built" in failed["reason"], failed
    assert "none-such" in laptop("--context", "alpha", "env", "build").err


def set_key(laptop: Laptop, key: str, value: object) -> None:
    """Set a key of the context beta."""
    contexts = laptop.home / "config" / "contexts.yaml"
    text = re.sub(rf"\n    {key}: .*", "", contexts.read_text())
    contexts.write_text(text.replace("  beta:\n", f"  beta:\n    {key}: {value}\n"))


TOOLS = "/lustre/scratch/alice/yurt/tools"


@pytest.fixture
def beta(lab: Lab) -> Iterator[Callable[[str], str]]:
    """A function that runs a command on beta, which has no programs of yurt before and after."""
    clear = f"chmod -R u+w {TOOLS}/../envs; rm -rf {TOOLS} {TOOLS}/../envs"
    ssh = partial(Ssh(lab), "beta")
    ssh(clear)
    yield ssh
    ssh(clear)


@pytest.mark.slow
def test_conda_is_installed_on_request(laptop: Laptop, lab: Lab, beta: Callable[[str], str], tmp_path: Path) -> None:
    (laptop.project / "environment.yml").write_text(ENVIRONMENT)
    (laptop.project / "train.py").write_text("import sys, tiny\nprint(tiny.x, sys.prefix)\n")
    refused = laptop("--context", "beta", "run", "train.py")
    assert refused.code and "beta has no conda for environment.yml" in refused.err, refused
    assert "conda_installer" in refused.err
    broken = tmp_path / "broken.sh"
    broken.write_text('#!/bin/bash\nmkdir -p "$3/bin" && touch "$3/bin/conda"\nexit 3\n')
    set_key(laptop, "conda_installer", broken)
    failed = laptop("--context", "beta", "env", "build")
    assert failed.code == 5 and "the installer of conda failed" in failed.err, failed
    assert "conda-" not in beta(f"ls {TOOLS}")
    envs_conda.installer(Ssh(lab), "beta", tmp_path / "installer.sh")
    set_key(laptop, "conda_installer", tmp_path / "installer.sh")
    done = laptop("--context", "beta", "run", "--wait", "train.py")
    assert done.code == 0, done
    assert laptop.quick("logs", "-").out.split()[0] == "1"
    assert "installer" not in beta(f"ls {TOOLS}"), "it is removed after the installation"
    first = beta(f"cat {TOOLS}/conda")
    (laptop.project / "environment.yml").write_text(ENVIRONMENT.replace("hello", "gpu"))
    set_key(laptop, "env_cuda", "'12.4'")
    again = laptop("--context", "beta", "env", "build")
    assert again.code == 0 and beta(f"cat {TOOLS}/conda") == first, again
