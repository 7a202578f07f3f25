"""Writing to MLflow, killed again and again: nothing is missing, nothing is there twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def killed(folder: Path, seed: int, kills: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.tracking.mlflow_kills", str(folder), str(seed), str(kills)],
        env={**os.environ, "YURT_DATA_HOME": str(folder / "data")},
        capture_output=True,
        text=True,
        timeout=800,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any], kills: int) -> None:
    assert found["killed"] > kills / 2
    assert found["missing"] == 0 and found["twice"] == 0
    nested = f"s.0#{'f' * 32}"
    assert [run[:2] for run in found["runs"]] == [[key, "FINISHED"] for key in ("s", "s.0", nested, "s.1")]
    assert found["runs"][1][2] == {"lr": "0", "depth": "3"}


def test_some_kills(tmp_path: Path) -> None:
    check(killed(tmp_path, 7, 6), 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_kills(tmp_path: Path, seed: int) -> None:
    check(killed(tmp_path, seed, 20), 20)
