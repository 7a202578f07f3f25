"""pytest fixtures, known to pytest wherever yurt is installed.

`lab` is a lab that is up, shared by the whole session and taken down at its end. It lives in a
folder of its own, never in the user's. With YURT_TEST_HOME=DIR it lives there and is left up, so
that the next session finds it running. Under pytest-xdist every worker has a lab of its own.
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
    """A config and a data folder of the session's own; the environment points yurt at them."""
    kept = os.environ.get("YURT_TEST_HOME")
    home = Path(kept, os.environ.get("PYTEST_XDIST_WORKER", "")) if kept else tmp_path_factory.mktemp("yurt")
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
    """Both clusters, up."""
    from yurt.lab import Lab

    found = Lab()
    found.up()
    yield found
    if not os.environ.get("YURT_TEST_HOME"):
        found.down(wipe=True)
