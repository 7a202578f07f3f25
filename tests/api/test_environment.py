"""Calls get the environment that the project declares, as `yurt run` does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import yurt
from tests.api.conftest import Here
from tests.lab.conftest import Ssh
from tests.wheels import tiny
from yurt.api import pickles
from yurt.envs.declared import Declared
from yurt.envs.of_runs.python import pick
from yurt.errors import UserError
from yurt.lab import Lab
from yurt.model.context import Context
from yurt.model.env import EnvTools, SitePython

SECONDS = 240


@pytest.mark.parametrize(
    ("like", "needs", "found"), [("3.11", "", "3.11.4"), ("3.12", "", "3.9.2"), ("3.11", ">=3.12.5", "3.13.0")]
)
def test_the_version_of_the_calling_program_is_preferred(like: str, needs: str, found: str) -> None:
    pythons = [SitePython(each, f"/usr/bin/python{each}", True) for each in ("3.9.2", "3.11.4", "3.13.0")]
    tools = EnvTools(asked_at=0, machine="x86_64", libc="glibc 2.36", pythons=pythons)
    declared = Declared(kind="requirements", files={"requirements.txt": b""}, python=needs)
    chosen = pick(tools, declared, Context(name="x", type="slurm"), like)
    assert chosen is not None and chosen.version == found


@pytest.fixture
def index(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_environments: Ssh) -> None:
    """A package `called` in alpha's index and on the user's machine, and no environments."""
    wheel = tiny(tmp_path / "wheels", "called", code="import sys\nx = sys.prefix\n")
    lab.index.add([wheel])
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))


@pytest.mark.lab
@pytest.mark.xdist_group("envs")
@pytest.mark.parametrize("context", ["alpha", "beta"])
@pytest.mark.slow
def test_calls_get_the_environment_of_the_project(
    here: Here, context: str, index: None, caplog: pytest.LogCaptureFixture
) -> None:
    def imported() -> str:
        import called  # type: ignore[import-not-found]

        prefix: str = called.x
        return prefix

    (here.project / "requirements.txt").write_text("called\n")
    with caplog.at_level(logging.WARNING, "yurt"), yurt.executor(context) as executor:
        first = executor.submit(imported)
        prefix = first.result(SECONDS)
        assert executor.submit(imported).result(SECONDS) == prefix
        assert first.run is not None
    run = here.yurt("show", first.run.id, "--json").json["data"]
    env = run["run"]["env"]
    assert prefix.startswith(f"{env['folder']}/env-") and env["python"].startswith(f"{pickles.HERE}.")
    assert run["packages"] == {"called": "1.0"}
    assert caplog.messages == [f"building the environment of requirements.txt on {context}, once"]
    with yurt.executor(context, env="none") as executor:
        error = executor.submit(imported).exception(SECONDS)
        assert isinstance(error, ModuleNotFoundError), "without an environment, as before"
    with pytest.raises(UserError, match=r"none\.txt"):
        yurt.executor(context, env="none.txt")
