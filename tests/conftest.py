"""Fixtures that all tests share: users, their machines, and required programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.calls import Called, Yurt, call
from tests.suite import environment

if TYPE_CHECKING:
    from tests.laptop import Laptop
    from tests.user import User
    from yurt.lab import Lab

environment.settle()
# An example may take as long as the machine needs: pytest-timeout limits the whole test.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

pytest_plugins = [
    "tests.suite.commands",
    "tests.suite.labs",
    "tests.suite.order",
    "tests.suite.slow",
    "tests.suite.report",  # imports the two above
    "tests.environments",
    "tests.envs_apptainer",
    "tests.envs_conda",
    "tests.envs_venv",
]


@pytest.fixture
def yurt(tmp_path: Path) -> Yurt:
    """A function that calls yurt with private config and data folders."""
    home = {"YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}

    def run(*arguments: str, **more: Any) -> Called:
        return call(*arguments, environment={**home, **more.pop("environment", {})}, **more)

    return run


@pytest.fixture(scope="session")
def probed(lab: Lab, yurt_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration folder with both clusters of the lab, after `yurt context probe`."""
    from tests.laptop import Laptop

    with Laptop(tmp_path_factory.mktemp("probed"), yurt_home / "config") as laptop:
        for name in ("alpha", "beta"):
            assert laptop("context", "probe", name).code == 0
    return laptop.home / "config"


@pytest.fixture
def laptop(tmp_path: Path, probed: Path) -> Iterator[Laptop]:
    """A user's machine that can reach the clusters of the lab."""
    from tests.laptop import Laptop

    with Laptop(tmp_path / "laptop", probed) as made:
        yield made


@pytest.fixture(scope="module")
def shared_laptop(tmp_path_factory: pytest.TempPathFactory, probed: Path) -> Iterator[Laptop]:
    """A laptop for runs that several tests of a module share."""
    from tests.laptop import Laptop

    with Laptop(tmp_path_factory.mktemp("shared") / "laptop", probed) as made:
        yield made


@pytest.fixture
def second_laptop(tmp_path: Path, probed: Path) -> Iterator[Laptop]:
    """Another machine of the same user, with its own index."""
    from tests.laptop import Laptop

    with Laptop(tmp_path / "second laptop", probed) as made:
        yield made


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[User]:
    """A user with an empty configuration; the working directory is their project."""
    from tests.user import User

    with User(tmp_path) as found:
        monkeypatch.chdir(found.project)
        yield found


@pytest.fixture
def valgrind() -> str:
    """The path of valgrind. Without it the test is skipped, except in CI."""
    found = shutil.which("valgrind")
    if found is None and not os.environ.get("CI"):
        pytest.skip("needs the Debian package valgrind")
    assert found, "valgrind is not installed"
    return found
