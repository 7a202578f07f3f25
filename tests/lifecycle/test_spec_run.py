"""`yurt run --spec` with files written for mrunner: their parameters reach every kind of script."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.calls import Called, Yurt

Type = Callable[..., Called]

CONF = """\
from mrunner.helpers.specification_helper import create_experiments_helper

experiments_list = create_experiments_helper(
    experiment_name="digits",
    project_name="lab/digits",
    script="python train.py",
    python_path=".",
    tags=["t"],
    base_config={"lr": 0.1, "name": "it's ü\\n2", "net": {"width": 64}, "none": None},
    params_grid={"seed": [1, 2]},
)
"""

ARGPARSE = """\
import argparse

parser = argparse.ArgumentParser()
for key in ("lr", "seed", "name", "net", "none"):
    parser.add_argument(f"--{key}", default="default")
given = parser.parse_args()
print(given.lr, given.seed, ascii(given.name), given.net, given.none)
"""

CALLS = """\
from mrunner.helpers.client_helper import get_configuration

given = get_configuration()
print(given.lr, given.seed, ascii(given.name), given.net["width"], given.none)
"""

REAL = """\
import argparse
import pickle

from munch import Munch


def get_configuration():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="")
    with open(parser.parse_args().config, "rb") as stream:
        experiment = Munch(pickle.load(stream))
    print("the real one:", experiment.name, experiment.tags, experiment.git_info)
    return Munch(experiment["parameters"])
"""


@pytest.fixture
def typed(yurt: Yurt, tmp_path: Path) -> Iterator[Type]:
    project, before = tmp_path / "project", Path.cwd()
    project.mkdir()
    os.chdir(project)
    yield yurt
    os.chdir(before)


def outputs(typed: Type, *words: str) -> list[str]:
    """Run a sweep and return the output of each task."""
    done = typed("run", "--wait", "--json", "--spec", "conf.py", *words)
    assert done.code == 0, done
    run = done.json["data"]["run"]
    return [Path(run["folder"], "tasks", str(number), "out.log").read_text() for number in range(run["tasks"])]


def test_a_script_with_argparse_gets_arguments(typed: Type) -> None:
    Path("conf.py").write_text(CONF)
    Path("train.py").write_text(ARGPARSE)
    assert outputs(typed) == [f'0.1 {seed} "it\'s \\xfc\\n2" {{"width":64}} default\n' for seed in (1, 2)], (
        "today they ran with their defaults"
    )


def test_a_script_that_calls_get_configuration(typed: Type) -> None:
    Path("conf.py").write_text(CONF)
    Path("train.py").write_text(CALLS)
    assert outputs(typed) == [f'0.1 {seed} "it\'s \\xfc\\n2" 64 None\n' for seed in (1, 2)]


def test_an_installed_mrunner_gets_its_file(typed: Type) -> None:
    """A mrunner before yurt's stand-in on sys.path reads `--config FILE`, pickled objects included."""
    Path("conf.py").write_text(CONF.replace('"seed": [1, 2]', '"seed": [1, 2], "f": [lambda x: x + 1], "g": [[max]]'))
    Path("train.py").write_text(CALLS + "print(given.f(2), given.g[0](3, 4))\n")
    helpers = Path("lib", "mrunner", "helpers")
    helpers.mkdir(parents=True)
    for file in (helpers / "__init__.py", helpers.parent / "__init__.py"):
        file.write_text("")
    (helpers / "client_helper.py").write_text(REAL)
    found = outputs(typed, "--var", "PYTHONPATH=lib")
    head = "the real one: digits ['t'] None\n"
    assert found == [f'{head}0.1 {seed} "it\'s \\xfc\\n2" 64 None\n3 4\n' for seed in (1, 2)]


def test_an_object_is_no_argument(typed: Type) -> None:
    Path("conf.py").write_text(CONF.replace('"seed": [1, 2]', '"seed": [1, 2], "f": [lambda x: x + 1]'))
    Path("train.py").write_text(ARGPARSE)
    warned = typed("run", "--wait", "--spec", "conf.py")
    assert warned.code == 0
    text = "parameter f is a Python object of the spec file and is not passed as an argument; only get_configuration()"
    assert f"yurt: warning: {text}" in warned.err


def test_pickled_and_long_values_in_tables(typed: Type) -> None:
    grid = '"seed": [1, 2], "f": [abs, max], "long": ["x" * 5000, "y" * 5000]'
    Path("conf.py").write_text(CONF.replace('"seed": [1, 2]', grid).replace('"lr": 0.1', '"same": [min, "z" * 5000]'))
    Path("train.py").write_text("")
    assert typed("run", "--wait", "--spec", "conf.py").code == 0
    table = typed("show", "@last-sweep").out
    assert "<built-in function abs>" in table and "cloudpickle" not in table
    assert (
        max(map(len, table.splitlines())) < 800 and "x…" in table and '  same: ["<built-in function min>","zzz' in table
    )
    one = typed("show", "@last-sweep.0").out
    assert "  f: <built-in function abs>\n" in one and max(map(len, one.splitlines())) < 800
    sheet = typed("show", "@last-sweep", "--csv").out
    assert "x" * 5000 in sheet and "cloudpickle" not in sheet


def test_a_spec_file_in_place_of_a_script(typed: Type) -> None:
    Path("conf.py").write_text(CONF)
    refused = typed("run", "conf.py")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.splitlines() == [
        "yurt: 'conf.py' is a spec file of mrunner, not a script; nothing was run",
        "  hint: run its experiments with `yurt run --spec conf.py`",
    ]
    assert typed("ps", "--json").json["data"] == []
