"""A user's Python process that can use this machine and both clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import site_python
from tests.calls import Called, call
from tests.laptop import Laptop
from yurt.clocks import clocks
from yurt.contexts import folders
from yurt.lab import Lab

CONTEXTS = ["local", pytest.param("alpha", marks=pytest.mark.lab), pytest.param("beta", marks=pytest.mark.lab)]
"""For tests that pass on every kind of context."""


class Here:
    """The folders of the user; this process is the user's Python."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.home, self.project, self.environment = home, home / "proj", environment

    def yurt(self, *arguments: str) -> Called:
        return call(*arguments)

    def sweeps(self) -> list[str]:
        """All sweeps in the index, newest first."""
        with folders.store() as index:
            return [entry.run.id for entry in index.newest() if entry.run.tasks]


@pytest.fixture
def at_home(tmp_path: Path) -> Here:
    """A user with this machine only."""
    home = tmp_path / "home"
    (home / "proj").mkdir(parents=True)
    return Here(home, {"YURT_CONFIG_HOME": str(home / "config"), "YURT_DATA_HOME": str(home / "data")})


@pytest.fixture(scope="package")
def probed(lab: Lab, probed: Path, yurt_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A configuration folder with both clusters, which have the Python that can load the functions of these tests."""
    if not site_python.lacks_it(lab):
        yield probed
        return
    if not site_python.PROGRAM.exists():
        pytest.skip(f"needs {site_python.PROGRAM}, which the clusters get: functions of the tests are of this version")
    with site_python.given(lab, "alpha"), site_python.given(lab, "beta"):
        with Laptop(tmp_path_factory.mktemp("probed"), yurt_home / "config") as laptop:
            for name in ("alpha", "beta"):
                assert laptop("context", "probe", name).code == 0
        yield laptop.home / "config"


@pytest.fixture
def with_clusters(laptop: Laptop) -> Here:
    """A user with the lab's clusters."""
    return Here(laptop.home, laptop.environment)


@pytest.fixture
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """The user that a test's `context` needs; the working directory is the user's project."""
    context = request.node.callspec.params.get("context", "local") if hasattr(request.node, "callspec") else "local"
    found: Here = request.getfixturevalue("at_home" if context == "local" else "with_clusters")
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(found.project)
    clocks.cache_clear()
    yield found
    clocks.cache_clear()
