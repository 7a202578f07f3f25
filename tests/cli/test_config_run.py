"""`yurt run --config`: one run if the file has no grid, otherwise a sweep; values keep their types."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calls import Yurt

NEPTUNE = """\
project: lab/digits
name: baseline
tags: [first]
parameters:
  lr: 0.1
  version: "1"
  fast: true
"""


def test_one_run_without_a_grid_and_a_sweep_with_one(
    yurt: Yurt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "neptune.yaml").write_text(NEPTUNE)
    (tmp_path / "train.py").write_text("import os\nprint(open(os.environ['YURT_PARAMS']).read())\n")
    one = yurt("run", "--no-snapshot", "--wait", "--json", "--config", "neptune.yaml", "python3", "train.py")
    assert one.code == 0, one
    row = yurt("ps", "--json").json["data"][0]
    assert (row["tasks"], row["name"], row["tags"]) == (0, "baseline", ["first"])
    assert row["params"] == {"lr": 0.1, "version": "1", "fast": True}
    assert json.loads(yurt("logs", "-").out) == row["params"]
    grid = ["--grid", "seed=1,2", "--param", "lr=0.2"]
    assert yurt("run", "--no-snapshot", "--wait", "--config", "neptune.yaml", *grid, "python3", "train.py").code == 0
    assert yurt("ps", "--json").json["data"][0]["tasks"] == 2
    assert json.loads(yurt("logs", "@last-sweep.1").out) == {"lr": 0.2, "version": "1", "fast": True, "seed": 2}
