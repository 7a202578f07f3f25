"""Scripts written for mrunner, in a run: parameters and metrics."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.node.conftest import Run, pythons
from yurt.backends.job import module

SHIM = module.SOURCE / "shim"
FIXTURES = Path(__file__).parents[1] / "fixtures" / "mrunner"


def given(run: Run, **params: object) -> None:
    (run.folder / "params.json").write_text(json.dumps(params))


@pytest.mark.parametrize("file", sorted(SHIM.rglob("*.py")), ids=lambda file: str(file.relative_to(SHIM)))
def test_old_pythons_can_read_it(file: Path) -> None:
    tree = ast.parse(file.read_bytes(), feature_version=(3, 6))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]


@pytest.mark.parametrize("python", pythons())
def test_on_each_python_there_is(run: Run, python: str) -> None:
    given(run, param1=2, net={"width": 64})
    script = (
        "from mrunner.helpers.client_helper import *\np = get_configuration()\nassert p.net.width == 64\nlogger('a', 1)"
    )
    subprocess.run([python, "-W", "error", "-c", script], env=run.environment, cwd=run.work, check=True)
    grids = (
        "from mrunner.helpers.specification_helper import *\n"
        "e = create_experiments_helper('n', {'b': 1}, {'a___': [1, 2], 'c___': [3, 4], 'd': (5, 6)}, 's', '', [])\n"
        "assert [tuple(x.parameters.values()) for x in e] == [(1, 1, 3, 5), (1, 1, 3, 6), (1, 2, 4, 5), (1, 2, 4, 6)]"
    )
    subprocess.run([python, "-W", "error", "-c", grids], env={"PYTHONPATH": str(SHIM)}, cwd=run.work, check=True)


def test_the_basic_script(run: Run) -> None:
    given(run, param1=3)
    out, err = run((FIXTURES / "basic.py").read_text())
    assert "Params: Munch({'param1': 3})" in out and not err
    assert [(row["step"], row["test channel1"]) for row in run.rows()] == [(0, 0), (1, 1), (2, 2)]


def test_a_pickled_function(run: Run) -> None:
    pickled = {"pickled": "<built-in function abs>", "cloudpickle": base64.b64encode(b"cbuiltins\nabs\n.").decode()}
    given(run, param1=2, param3=pickled)
    run((FIXTURES / "basic.py").read_text())
    assert [row["test channel2"] for row in run.rows()[2:]] == [0, 1]
    given(run, net={"layers": [pickled, 3]})
    script = "from mrunner.helpers.client_helper import *\nprint(get_configuration().net.layers[0](-2))"
    assert run(script)[0] == "2\n"


def test_the_grid_script(run: Run) -> None:
    given(run, run_kind="train", seed=3, unfreeze={"actor": 50}, exp_tags=["a"], character=None)
    out, _ = run((FIXTURES / "grid.py").read_text(), YURT_RUN_ID="abc-de")
    rest = {"seed": 3, "unfreeze": {"actor": 50}, "character": None, "exp": {"tags": ["a"]}}
    assert json.loads(out) == ["abc-de", "train", 3, 50, rest]


def test_gin(run: Run) -> None:
    given(run, **{"train.lr": 0.1, "train.net": "@Net", "train.act": "re'lu", "train.sizes": [1, 2], "width": 64})
    script = (FIXTURES / "gin_script.py").read_text()
    assert "No module named 'gin'" in run(script, code=1)[1]
    (run.work / "gin.py").write_text("def parse_config(lines):\n  print(lines)\n")
    bound, values = run(script)[0].splitlines()
    assert ast.literal_eval(bound) == [
        "train.lr = 0.1",
        "train.net = @Net",
        'train.act = "re\'lu"',
        "train.sizes = [1, 2]",
    ]
    assert values == "0.1 64"


def test_absl_flags_are_refused(run: Run) -> None:
    script = "from mrunner.helpers.client_helper import *\nget_configuration(inject_parameters_to_FLAGS=True)"
    assert "yurt does not set absl flags; set them from get_configuration()" in run(script, code=1)[1]


def test_metrics_of_every_shape(run: Run) -> None:
    run(
        "from mrunner.helpers.client_helper import logger\nlogger(' loss ', 0.5)\nlogger('loss', [0.4, 0.3])\n"
        "logger('acc', [(10, 0.1), (20, 0.2)])\nlogger('best', 9, single_value=True)\nlogger('step', 1)\n"
    )
    rows = [{key: value for key, value in row.items() if key != "time"} for row in run.rows()]
    assert rows == [
        {"step": 0, "loss": 0.5},
        {"step": 1, "loss": 0.4},
        {"step": 2, "loss": 0.3},
        {"step": 10, "acc": 0.1},
        {"step": 20, "acc": 0.2},
        {"best": 9},
        {"step": 0, "step_": 1},
    ]


def test_outside_of_a_run_metrics_are_printed(run: Run) -> None:
    script = "from mrunner.helpers.client_helper import *\nprint(get_configuration())\nlogger('a', 1)"
    assert run(script, outside=True)[0] == "Munch({'experiment_id': None})\na:1\n"


MUNCH = """
import copy, pickle
from munch import Munch, munchify, unmunchify
m = Munch(a=1, b={"c": 2})
print(m, m.a, vars(m), sorted(dir(m)), hasattr(m, "z"), copy.deepcopy(m), pickle.loads(pickle.dumps(m)))
n = munchify({"x": [{"y": 1}], "t": ({"u": 2},)})
print(n.x[0].y, n.t[0].u, unmunchify(n), n.toDict(), type(n.copy()).__name__, Munch.fromDict({"a": {"b": 1}}).a.b)
m.z = 3
del m.a
print(m, "z" in m, m.get("q", 5))
for way in (lambda: m.nope, lambda: delattr(m, "nope"), lambda: m["nope"]):
    try:
        way()
    except (AttributeError, KeyError) as error:
        print(repr(error))
"""

AS_MUNCH_4 = """\
Munch({'a': 1, 'b': {'c': 2}}) 1 {'a': 1, 'b': {'c': 2}} ['a', 'b'] False Munch({'a': 1, 'b': {'c': 2}}) \
Munch({'a': 1, 'b': {'c': 2}})
1 2 {'x': [{'y': 1}], 't': ({'u': 2},)} {'x': [{'y': 1}], 't': ({'u': 2},)} Munch 1
Munch({'b': {'c': 2}, 'z': 3}) True 5
AttributeError('nope')
AttributeError('nope')
KeyError('nope')
"""


def test_munch_is_what_munch_is(run: Run) -> None:
    assert run(MUNCH)[0] == AS_MUNCH_4


def test_the_real_munch_goes_first(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "munch.py").write_text("kind = 'real'\n")
    path = f"{run.environment['PYTHONPATH']}:{real}"
    assert run("import munch\nprint(munch.kind)", PYTHONPATH=path)[0] == "real\n"


def test_the_real_mrunner_goes_first(run: Run, tmp_path: Path) -> None:
    helpers = tmp_path / "real" / "mrunner" / "helpers"
    helpers.mkdir(parents=True)
    (helpers.parent / "__init__.py").write_text("kind = 'real'\n")
    (helpers / "__init__.py").write_text("")
    (helpers / "client_helper.py").write_text("def get_configuration(): return 'of the real one'\n")
    path = f"{run.environment['PYTHONPATH']}:{tmp_path / 'real'}"
    script = "import mrunner\nfrom mrunner.helpers.client_helper import *\nprint(mrunner.kind, get_configuration())"
    assert run(script, PYTHONPATH=path)[0] == "real of the real one\n"
