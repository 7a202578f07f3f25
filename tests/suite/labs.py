"""Stops the labs of workers that were interrupted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_unconfigure(config: pytest.Config) -> None:
    base = getattr(getattr(config, "_tmp_path_factory", None), "_basetemp", None)
    if hasattr(config, "workerinput") or base is None or os.environ.get("YURT_TEST_HOME"):
        return
    for state in Path(base).glob("**/lab/*/lab.json"):
        from yurt.lab import Lab

        os.environ["YURT_DATA_HOME"] = str(state.parents[2])
        os.environ["YURT_CONFIG_HOME"] = str(state.parents[3] / "config")
        Lab(state.parent.name).down(wipe=True)
