"""What a site has for building environments is cached for several lists of modules; a cache is not required."""

from __future__ import annotations

import time
from types import SimpleNamespace

import msgspec
import pytest

from yurt.config import paths
from yurt.contexts import connect, env_tools
from yurt.model.context import Context
from yurt.model.env import EnvTools
from yurt.model.facts import Facts

CONTEXT = Context(name="big", type="slurm", slurm_url="me@big", storage_dir="/s")
WITH_MODULE = msgspec.structs.replace(CONTEXT, modules_to_load=("python/3.11",))
FACTS = Facts(probed_at=0, user="me", host="big")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> list[list[str]]:
    """The modules of each question to a site."""
    found: list[list[str]] = []

    def ask(_base: str, _init: str, modules: list[str]) -> EnvTools:
        found.append(list(modules))
        return EnvTools(asked_at=time.time(), machine="x86_64", libc="glibc 2.36")

    monkeypatch.setattr(connect, "backend", lambda _context: SimpleNamespace(envs=SimpleNamespace(ask=ask)))
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path))
    return found


def test_tools_are_asked_once_for_each_list_of_modules(asked: list[list[str]]) -> None:
    for _ in range(2):
        for context in (CONTEXT, WITH_MODULE):
            env_tools.tools_of(context, FACTS)
    assert asked == [[], ["python/3.11"]]
    env_tools.tools_of(CONTEXT, FACTS, oldest=0)
    env_tools.forget("big")
    env_tools.tools_of(WITH_MODULE, FACTS)
    assert len(asked) == 4


def test_a_folder_that_cannot_be_written_only_costs_the_cache(asked: list[list[str]]) -> None:
    (paths.config_home() / "facts").write_text("not a folder")
    for _ in range(2):
        assert env_tools.tools_of(CONTEXT, FACTS).machine == "x86_64"
    assert len(asked) == 2
