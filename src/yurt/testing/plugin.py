"""pytest fixtures, available to pytest in every environment with yurt.

`lab` is a running lab, shared by the session and stopped at its end. It uses a temporary folder, never the user's.
With YURT_TEST_HOME=DIR it uses that folder and keeps running, so that the next session can reuse it. Under pytest-xdist
every worker has its own lab. With LAB_SLURM=26.05 its clusters have that version of Slurm.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from yurt.lab import Lab


@pytest.fixture(scope="session")
def yurt_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Config and data folders of this session; the environment points yurt to them."""
    kept = os.environ.get("YURT_TEST_HOME")
    names = [os.environ.get(name, "") for name in ("LAB_SLURM", "PYTEST_XDIST_WORKER")]
    home = Path(kept, *names) if kept else tmp_path_factory.mktemp("yurt")
    changed = {"YURT_CONFIG_HOME": str(home / "config"), "YURT_DATA_HOME": str(home / "data")}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    yield home
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def lab(yurt_home: Path) -> Iterator[Lab]:
    """A lab with both clusters running."""
    from yurt.lab import Lab

    found = Lab()
    found.up(slurm=os.environ.get("LAB_SLURM", ""))
    yield found
    if not os.environ.get("YURT_TEST_HOME"):
        found.down(wipe=True)
