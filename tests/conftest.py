"""What all tests share: the installed `yurt` as a user calls it, and homes of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

YURT = str(Path(sys.executable).parent / "yurt")


@dataclass(frozen=True)
class Called:
    """What one call of yurt came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Yurt = Callable[..., Called]


def call(*arguments: str, environment: dict[str, str] | None = None, timeout: float = 120) -> Called:
    done = subprocess.run(
        [YURT, *arguments],
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    return Called(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def yurt(tmp_path: Path) -> Yurt:
    """Calls yurt with config and data folders of the test's own."""
    home = {"YURT_CONFIG_HOME": str(tmp_path / "config"), "YURT_DATA_HOME": str(tmp_path / "data")}

    def run(*arguments: str, **more: Any) -> Called:
        return call(*arguments, environment={**home, **more.pop("environment", {})}, **more)

    return run


@pytest.fixture
def valgrind() -> str:
    """The path of valgrind. Where it is absent the test is left out, but never in CI."""
    found = shutil.which("valgrind")
    if found is None and not os.environ.get("CI"):
        pytest.skip("valgrind is not installed: apt-get install valgrind")
    assert found, "valgrind is not installed"
    return found
