"""`--config`: neptune.yaml in all its formats, yurt.yaml with a grid, and their faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yurt.config import experiment, project
from yurt.errors import UserError
from yurt.model.grid import Grid, Sets

NEPTUNE = """\
project: alice/vision
name: salt
description: |
  two lines
  of text
tags: [solution-6, 2024, 1.10]
metric: {channel: IOUT, goal: maximize}
pip-requirements-file: requirements.txt
exclude:
- .git
parameters:
  # data
  train_dir: /data/train
  overwrite: 0
  min_lr: 1e-7
  lr: 0.0001
  half: .5
  fast: True
  slow: false
  layers: [64, 64]
  augment: {flip: true, angle: 1e1}
  mode: "015"
  zeros: 0123
  clock: 12:00:00
  date: 2024-01-02
  grouped: 1_000
  mask: 0x1f
  nothing:
  quoted: "3"
"""

FIRST = """\
host: host.example
username: alice
name: dqn
project: Deep Q-learning
tags: [plgrid, adam]
parameters:
  - {name: env, description: which game, type: string, default: Breakout, required: false}
  - {name: version, type: string, default: 1.10}
  - {name: eval, type: boolean, default: False}
  - {name: lr, type: double, default: 1e-3}
  - {name: model, type: string, required: false}
"""

YURT = """\
name: paper
partition: gpu
note: a larger batch
tags: baseline
parameters: {batch: 32}
zip:
  width: [64, 128]
  depth: 2,4
grid:
  seed: 0..2
  act: [relu, null]
"""


def written(folder: Path, text: str, name: str = "neptune.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def sets(found: experiment.Experiment) -> list[dict[str, Any]]:
    return list(Sets([Grid(axes) for axes in found.grids]))


def test_neptune_yaml(tmp_path: Path) -> None:
    file = written(tmp_path, NEPTUNE)
    found = experiment.read(file)
    assert (found.project, found.name, found.note) == ("alice/vision", "salt", "two lines\nof text\n")
    assert found.tags == ("solution-6", "2024", "1.10") and found.grids == []
    expected = {
        "train_dir": "/data/train",
        "overwrite": 0,
        "min_lr": 1e-7,
        "lr": 0.0001,
        "half": 0.5,
        "fast": True,
        "slow": False,
        "layers": [64, 64],
        "augment": {"flip": True, "angle": 10.0},
        "mode": "015",
        "zeros": "0123",
        "clock": "12:00:00",
        "date": "2024-01-02",
        "grouped": "1_000",
        "mask": 31,
        "nothing": None,
        "quoted": "3",
    }
    assert json.dumps(found.parameters) == json.dumps(expected)
    assert found.warnings == [f"{file}: ignored keys that yurt does not use: metric, pip-requirements-file, exclude"]


def test_neptune_yaml_in_its_oldest_format(tmp_path: Path) -> None:
    found = experiment.read(written(tmp_path, FIRST))
    expected = {"env": "Breakout", "version": "1.10", "eval": False, "lr": 0.001}
    assert json.dumps(found.parameters) == json.dumps(expected) and found.name == "dqn"


def test_a_grid_in_the_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    found = experiment.read(written(tmp_path, YURT, "yurt.yaml"))
    assert (found.name, found.note, found.tags, found.parameters) == (
        "paper",
        "a larger batch",
        ("baseline",),
        {"batch": 32},
    )
    all_of_them = sets(found)
    assert len(all_of_them) == 2 * 3 * 2 and not found.warnings
    assert all_of_them[:3] == [
        {"width": 64, "depth": 2, "seed": 0, "act": "relu"},
        {"width": 64, "depth": 2, "seed": 0, "act": None},
        {"width": 64, "depth": 2, "seed": 1, "act": "relu"},
    ]
    assert all_of_them[-1] == {"width": 128, "depth": 4, "seed": 2, "act": None}
    around = project.find(tmp_path)
    assert around is not None and around.name == "paper", "the same file is the project file"
    assert around.settings == {"partition": "gpu", "tags": ("baseline",)}


def test_the_project_accepts_the_keys_of_an_experiment() -> None:
    assert {*experiment.EXAMPLES} == {*project.EXPERIMENT_KEYS, "name", "tags"}


def test_a_list_of_grids_and_a_values_file(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("5\n6\n")
    found = experiment.read(written(tmp_path, "zip: {a: [1], b: [x]}\ngrid:\n- seed: '@seeds.txt'\n- {lr: 0.5}\n"))
    assert sets(found) == [
        {"a": 1, "b": "x", "seed": 5},
        {"a": 1, "b": "x", "seed": 6},
        {"a": 1, "b": "x", "lr": 0.5},
    ]


def test_a_list_of_lists_is_lists(tmp_path: Path) -> None:
    found = experiment.read(written(tmp_path, "grid:\n  layers: [[64, 64], [32]]\n  word: ['1..3', \"2\"]\n"))
    assert sets(found)[0] == {"layers": [64, 64], "word": "1..3"} and len(sets(found)) == 4


def test_yes_is_text_with_a_warning(tmp_path: Path) -> None:
    file = written(tmp_path, "name: off\nparameters:\n  a: yes\n  b: 'no'\n  c: [on]\ntags: [no]\n")
    found = experiment.read(file)
    assert found.parameters == {"a": "yes", "b": "no", "c": ["on"]}
    assert [each.partition(": ")[0] for each in found.warnings] == [f"{file}:3", f"{file}:5"]
    assert "'yes' is read as text; write true or false for a boolean" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("name: a\nparamters: {lr: 1}\n", 2, "paramters is not a key of an experiment; did you mean 'parameters'?"),
        ("name: a\n\ngird: {lr: 1}\n", 3, "gird is not a key of an experiment; did you mean 'grid'?"),
        ("xyzzy: 1\n", 1, "xyzzy is not a key of an experiment; valid keys: name, project, note"),
        ("partition: gpu\n", 1, "partition is a project setting, not a key of an experiment; move it to yurt.yaml"),
        ("- a\n", 1, "the file must be a mapping of keys, not a list"),
        ("", 1, "the file must be a mapping of keys, not an empty value"),
        ("name: a\nparameters: [1\n", 3, "the file is not valid YAML"),
        ("parameters:\n  lr: 1\n  lr: 2\n", 3, "parameters.lr is set twice, in lines 2 and 3; keep one"),
        ("parameters: 3\n", 1, "parameters must be a mapping of keys to values, not '3'"),
        ("parameters:\n  a b: 3\n", 2, "parameters.a b is not allowed: invalid parameter name 'a b': use"),
        ("parameters:\n  lr: .nan\n", 2, "parameters.lr is nan, which JSON cannot represent"),
        ("parameters:\n  n: 99999999999999999999\n", 2, "parameters.n is a number with more than 64 bits"),
        ("parameters:\n  m: {1: 2}\n", 2, "parameters.m has the mapping key 1"),
        ("parameters: &a\n  m: *a\n", 2, "parameters.m is nested too deeply"),
        ("parameters:\n  b: !!binary aGk=\n", 2, "parameters.b has the type bytes"),
        ("parameters:\n  b: !!float abc\n", 2, "the file is not valid YAML: 'abc' is not a number"),
        ("parameters:\n- {type: int}\n", 1, "parameters has a list item without a name (item 1)"),
        ("parameters:\n- {name: a}\n- {name: b, default: 1}\n- {name: b}\n", 1, "parameters lists 'b' twice"),
        ("name: [a]\n", 1, "name must be text, not a list"),
        ("tags: {a: b}\n", 1, "tags must be a list of strings, not a mapping"),
        ("note: a\ndescription: b\n", 2, "description has the same meaning as note; keep one of them"),
        ("name: a\ngrid:\n", 2, "grid is empty (example: `grid: {lr: [0.1"),
        ("grid: []\n", 1, "grid is empty"),
        ("grid: [{a: [1]}, {}]\n", 1, "grid is empty"),
        ("zip: {}\n", 1, "zip is empty"),
        ("grid:\n  lr: []\n", 2, "grid.lr has no values (example: `lr: [0.1, 0.01]`)"),
        ("grid:\n  lr: 1..0\n", 2, "grid.lr has the range 1..0, which is empty (example: `lr: 0..1`)"),
        ("grid:\n  lr: 1..x\n", 2, "grid.lr has the range 1..x, but a range needs numbers; write"),
        ("grid:\n  lr: {a: 1}\n", 2, "grid.lr must be a list of values, not a mapping"),
        ("grid:\n  lr: [.inf]\n", 2, "grid.lr is inf, which JSON cannot represent"),
        ("grid:\n  lr: '@gone.txt'\n", 2, "grid.lr names the file gone.txt, which cannot be read: No such file"),
        ("zip:\n  a: [1, 2]\n  b: [1]\n", 1, "zip is invalid: zipped keys need the same number of values, but a has 2"),
        ("parameters: {lr: 1}\ngrid:\n  lr: [1]\n", 3, "grid.lr is set twice; set a parameter in only one of"),
        ("zip: {lr: [1]}\ngrid:\n  lr: [1]\n", 3, "grid.lr is set twice"),
    ],
)
def test_faults(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UserError) as error:
        experiment.read(file)
    assert error.value.message.startswith(f"{file}:{line}: {said}"), error.value.message
    assert "\n" not in error.value.message and error.value.exit_code == 2


def test_several_faults(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        experiment.read(written(tmp_path, "gird: 1\nparameters: 1\ngrid:\n  a: []\n"))
    assert [each.split(":")[0] for each in error.value.message.split("\n")[1:]] == ["  line 1", "  line 2", "  line 4"]


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--config: file '.*gone\.yaml' not found"):
        experiment.read(tmp_path / "gone.yaml")
