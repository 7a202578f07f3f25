"""A lab with the newest Slurm, beside the one of the session. Without its root, the tests are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.laptop import Laptop
from tests.suite.roots import usable
from yurt.backends.slurm.versions import TESTED, dotted
from yurt.lab import Lab

NEWEST = dotted(TESTED[-1])


@pytest.fixture(scope="module")
def yurt_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("newest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YURT_CONFIG_HOME", str(home / "config"))
        patch.setenv("YURT_DATA_HOME", str(home / "data"))
        yield home


@pytest.fixture(scope="module")
def lab(yurt_home: Path) -> Iterator[Lab]:
    """A lab of its own, with the newest Slurm."""
    problem = usable(NEWEST)
    if problem:
        assert not os.environ.get("SLOW_TESTS"), problem
        pytest.skip(f"needs {problem}")
    found = Lab()
    try:
        found.up(slurm=NEWEST)
        yield found
    finally:
        found.down(wipe=True)


@pytest.fixture(scope="module")
def probed(lab: Lab, yurt_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Laptop(tmp_path_factory.mktemp("probed"), yurt_home / "config") as laptop:
        for name in ("alpha", "beta"):
            done = laptop("context", "probe", name)
            assert done.code == 0 and "tested" not in done.err, done
    return laptop.home / "config"
