"""`yurt run --config`: one run if the file has no grid, otherwise a sweep; values keep their types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


SCRIPT = "import sys\nprint(sys.argv[1:])\n"


def run_of(yurt: Yurt) -> dict[str, Any]:
    found: dict[str, Any] = yurt("show", "-", "--json").json["data"]["run"]
    return found


def test_the_examples_of_mrunner_word_for_word(yurt: Yurt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both commands of mrunner's documentation, with `yurt` for `mrunner`."""
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "config" / "contexts.yaml"
    config.parent.mkdir()
    config.write_text("contexts:\n  gke.sandbox: {type: local}\n")
    (tmp_path / "requirements.txt").write_text("numpy\n")
    (tmp_path / "neptune.yaml").write_text(NEPTUNE.replace("lr: 0.1", "lr: 0.1\n  epochs: 9\n  param1: 7"))
    (tmp_path / "experiment1.py").write_text(SCRIPT)
    first = yurt(
        *("run", "--config", "neptune.yaml", "--tags", "grid_search_k-12-48", "--tags", "new_data"),
        *("--requirements", "requirements.txt", "--base_image", "python:3", "experiment1.py", "--", "--param1", "1"),
    )
    assert first.code == 0 and first.err.count("warning") == 2, first
    assert "warning: --requirements has no effect on this machine, which uses the active Python" in first.err
    assert "warning: --base_image python:3 is not used: yurt does not build images; use --container" in first.err
    assert yurt("wait", "-").code == 0
    assert (
        yurt("logs", "-").out
        == str(["--param1", "1", "--lr", "0.1", "--epochs", "9", "--version", "1", "--fast", "true"]) + "\n"
    )
    run = run_of(yurt)
    assert (run["name"], run["tags"]) == ("baseline", ["first", "grid_search_k-12-48", "new_data"])
    assert run["project"].startswith("lab-digits-") and run["params"]["param1"] == 1
    second = yurt(
        *("--context", "gke.sandbox", "run", "--config", "neptune.yaml", "--base_image", "python:3"),
        *("--requirements", "requirements.txt", "--", "experiment1.py", "--", "--epochs", "3"),
    )
    assert second.code == 0 and yurt("wait", "-").code == 0
    assert yurt("logs", "-").out.startswith("['--epochs', '3', '--lr', '0.1', '--param1', '7', ")
    run = run_of(yurt)
    assert (run["context"], run["params"]["epochs"]) == ("gke.sandbox", 3)


def test_the_project_of_a_file(yurt: Yurt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "neptune.yaml").write_text("project: lab/digits\n")
    (tmp_path / "conf.py").write_text("spec = [dict(project='lab/letters', parameters=dict(a=1), script='false')]\n")
    assert yurt("run", "--no-snapshot", "--wait", "--config", "neptune.yaml", "false").code == 1
    assert run_of(yurt)["project"].startswith("lab-digits-")
    assert yurt("run", "--no-snapshot", "--wait", "--spec", "conf.py").code == 1
    assert run_of(yurt)["project"].startswith("lab-letters-")
    assert yurt("run", "--no-snapshot", "--wait", "false").code == 1
    assert not run_of(yurt)["project"].startswith("lab-")
    again = yurt("retry", "--failed", "--yes", "--json").json["data"]
    assert len(again) == 3, "runs of this folder, under any name of the project"
