"""`--spec`: a user's file runs in a separate process and defines experiments; its failures do not harm yurt."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from yurt.config import spec
from yurt.config.spec import SpecError
from yurt.errors import UserError
from yurt.testing.waiting import eventually

FIXTURES = Path(__file__).parents[1] / "fixtures" / "mrunner"


def written(folder: Path, text: str) -> Path:
    file = folder / "conf.py"
    file.write_text(text)
    return file


def test_one_experiment(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PROJECT_QUALIFIED_NAME", "alice/vision")
    found = spec.read(FIXTURES / "basic_conf.py")
    (only,) = found.experiments
    assert (only.name, only.project, only.script) == ("basic experiment", "alice/vision", "python basic.py")
    assert (only.parameters, only.tags, only.mrunner) == ({"param1": 3}, ["test_experiments"], True)
    assert spec.variables(only) == {"SOME_SETTING": "7", "PYTHONPATH": "."}
    (warning,) = found.warnings
    assert "'time' of an mrunner experiment is ignored" in warning
    assert capfd.readouterr() == ("", "making the specification\n")


def test_a_file_that_exits(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("PROJECT_QUALIFIED_NAME", raising=False)
    file = FIXTURES / "basic_conf.py"
    with pytest.raises(SpecError) as error:
        spec.read(file)
    assert error.value.message == f"{file}:9: exited before it defined any experiments"
    assert capfd.readouterr().err == "Please set PROJECT_QUALIFIED_NAME\n"


def test_grids_zipped_axes_and_a_base() -> None:
    found = spec.read(FIXTURES / "grid_conf.py")
    assert len(found.experiments) == 2 * 3 * 2 + 1
    rows = [each.parameters for each in found.experiments]
    assert [(row["model_path"], row["use_prev_action"], row["seed"], row["lr"]) for row in rows[:-1]] == [
        (path, action, seed, lr)
        for path, action in (("/checkpoints/a", True), ("/checkpoints/b", False))
        for seed in range(3)
        for lr in (1e-4, 3e-4)
    ], "zipped keys vary slowest, as in mrunner"
    assert rows[-1]["strategies"] == ["goto", "explore"] and rows[-1]["lr"] == 0.001
    assert all(row["unfreeze"] == {"actor": 50_000, "critic": 0} and row["character"] is None for row in rows)
    first = found.experiments[0]
    assert (first.name, first.tags, first.exclude) == ("grid_conf", ["grid_conf"], ["checkpoint"])
    assert spec.variables(first) == {"OMP_NUM_THREADS": "1", "PYTHONPATH": ".:src"}
    assert [each.partition(": ")[2].split(" ")[0] for each in found.warnings] == [
        "mrunner_ignore",
        "some_new_argument=3",
    ]


def test_an_installed_mrunner_is_used(tmp_path: Path) -> None:
    package = tmp_path / "mrunner"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "experiment.py").write_text("class Experiment:\n  parameters = {'a': 'real'}\n  name = 'n'\n")
    file = written(tmp_path, "from mrunner.experiment import Experiment\nexperiments_list = [Experiment()]\n")
    (only,) = spec.read(file).experiments
    assert (only.parameters, only.name, only.mrunner) == ({"a": "real"}, "n", True)


def test_get_combinations() -> None:
    found = spec.read(FIXTURES / "gin_conf.py")
    assert [(each.parameters["width"], each.parameters["depth"]) for each in found.experiments] == [
        (64, 2),
        (64, 4),
        (128, 2),
        (128, 4),
    ]
    assert found.experiments[0].parameters["train.net"] == "@Net" and not found.warnings


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("def spec():\n  for lr in 0.1, 1e-3:\n    yield {'lr': lr}\n", [{"lr": 0.1}, {"lr": 0.001}]),
        ("def spec():\n  return [{'parameters': {'a': 1, 'b': True}}]\n", [{"a": 1, "b": True}]),
        ("spec = [{'a': None}, {'a': '1'}, {}]\n", [{"a": None}, {"a": "1"}, {}]),
        ("experiments_list = ({'a': i} for i in range(2))\nspec = 'words'\n", [{"a": 0}, {"a": 1}]),
        ("from mrunner.experiment import Experiment\nexperiment = Experiment(parameters={'a': 1})\n", [{"a": 1}]),
        ("def spec():\n  return {'a': (1, [2.5])}\n", [{"a": [1, [2.5]]}]),
        ("from pathlib import Path\nspec = [{'a': Path('x') / 'y'}]\n", [{"a": "x/y"}]),
        ("from enum import IntEnum\nclass E(IntEnum):\n  A = 3\nspec = [{'a': E.A}]\n", [{"a": 3}]),
        ("from beside import value\nspec = [{'a': value}]\n", [{"a": 7}]),
        ("from here import value\nspec = [{'a': value}]\n", [{"a": 8}]),
        (
            "from mrunner.helpers.specification_helper import *\nspec = get_combinations({'a': [1, 2, 3]}, limit=2)\n",
            [{"a": 1}, {"a": 2}],
        ),
        ("from munch import munchify\nspec = [munchify({'a': {'b': 1}})]\n", [{"a": {"b": 1}}]),
        (
            "class Number:\n  dtype = 1\n  def tolist(self): return [1, 2.5]\nspec = [{'a': Number()}]\n",
            [{"a": [1, 2.5]}],
        ),
        ("assert __name__ != '__main__' and script == 'conf.py'\nimport sys\nspec = [{'a': sys.argv}]\n", None),
        (
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            "@dataclass\nclass D:\n  a: int\nspec = [vars(D(1))]\n",
            [{"a": 1}],
        ),
    ],
)
def test_valid_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, rows: object) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "beside.py").write_text("value = 7\n")
    (here / "here.py").write_text("value = 8\n")
    monkeypatch.chdir(here)
    file = written(tmp_path, text)
    found = [each.parameters for each in spec.read(file).experiments]
    assert repr(found) == repr(rows or [{"a": [str(file)]}])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n\n1/0\n", ":3: failed: ZeroDivisionError: division by zero"),
        ("def spec():\n  return helper()\ndef helper():\n  raise ValueError('a\\nb')\n", ":4: failed: ValueError: a b"),
        ("import json\ndef spec():\n  return json.loads('{')\n", ":3: failed: JSONDecodeError: "),
        ("spec = [\n", ":1: is not valid Python: '[' was never closed"),
        ("import no_such_thing\n", ":1: failed: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1\n", " defines neither spec() nor experiments_list"),
        ("def spec(): pass\n", " must define a list of experiments as spec, not NoneType"),
        ("spec = 3\n", " must define a list of experiments as spec, not int"),
        ("spec = []\n", " defines no experiments"),
        ("spec = [3]\n", ": experiment 1: must be a mapping or an Experiment, not int"),
        ("class X: parameters = 3\nspec = [{}, X()]\n", ": experiment 2: parameters must be a mapping, not int"),
        ("spec = [{1: 2}]\n", ": experiment 1: parameter name 1 must be a string, not int"),
        (
            "spec = [{'a': float('nan')}]\n",
            ": experiment 1: parameter 'a' is nan, which JSON cannot represent",
        ),
        ("spec = [{'a': 1 << 64}]\n", ": experiment 1: parameter 'a' has more than 64 bits"),
        ("spec = [{'a': {1: 2}}]\n", ": experiment 1: parameter 'a' has the dict key 1; keys must be strings"),
        ("a = []\na.append(a)\nspec = [{'a': a}]\n", ": experiment 1: parameter 'a' is nested too deeply"),
        ("spec = [{'parameters': {}, 'tags': 3}]\n", " defines an invalid experiment: tags of experiment 1: "),
        ("def spec():\n  while True: yield {}\n", " defines more than 100,000 experiments"),
        ("import os\nos._exit(3)\n", "Python exited before {file} defined any experiments (exit code 3)"),
        (
            "import os\nos.kill(os.getpid(), 9)\n",
            "Python exited before {file} defined any experiments (killed by SIGKILL)",
        ),
        ("raise SystemExit('no GPU here')\n", ":1: exited before it defined any experiments: no GPU here"),
        (
            "from mrunner.helpers.specification_helper import *\n"
            "create_experiments_helper(params_grid={'a___': [1, 2], 'b___': [1]})\n",
            ":2: failed: ValueError: params_grid: a___ has 2 values but b___ has 1; the numbers must be equal",
        ),
        (
            "from mrunner.helpers.specification_helper import *\n"
            "r = range(1000)\nget_combinations({'a': r, 'b': r, 'c': r})\n",
            ":3: failed: ValueError: params_grid has 1,000,000,000 combinations; a sweep can have at most 100,000",
        ),
        (
            "from mrunner.helpers.specification_helper import *\n"
            "r = range(60_000)\nget_combinations([{'a': r}, {'a': r}])\n",
            ":3: failed: ValueError: params_grid has 120,000 combinations; a sweep can have at most 100,000",
        ),
        (
            "from mrunner.helpers.specification_helper import *\nget_combinations({'a': 'text'})\n",
            ":2: failed: TypeError: params_grid: a must be a list of values, not 'text'",
        ),
        (
            "from mrunner.helpers.specification_helper import *\nget_combinations({'a': [1], 'a___': [1]})\n",
            ":2: failed: ValueError: params_grid: a and a___ cannot be combined",
        ),
    ],
)
def test_invalid_files(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(SpecError) as error:
        spec.read(file)
    expected = said.format(file=file) if said.startswith("Python") else f"{file}{said}"
    assert error.value.message.startswith(expected), error.value.message
    assert "\n" not in error.value.message and error.value.code == "spec-failed"


def test_a_missing_module_has_a_traceback_and_a_hint(tmp_path: Path) -> None:
    file = written(tmp_path, "import no_such_thing\n")
    with pytest.raises(SpecError) as error:
        spec.read(file)
    assert error.value.traceback.startswith("Traceback") and f'File "{file}", line 1' in error.value.traceback
    assert error.value.hint == f"install no_such_thing for {sys.executable}, which runs the file"


def test_functions_need_cloudpickle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WITH_FUNCTIONS", "1")
    (tmp_path / "cloudpickle.py").write_text("raise ImportError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"experiment 1: parameter 'param3' is not a number.*<lambda>"):
        spec.read(FIXTURES / "gin_conf.py")
    (tmp_path / "cloudpickle.py").write_text("def dumps(value): return b'pickle of ' + value.__name__.encode()\n")
    found = spec.read(FIXTURES / "gin_conf.py")
    assert len(found.experiments) == 8
    assert found.experiments[0].parameters["param3"]["cloudpickle"] == "cGlja2xlIG9mIDxsYW1iZGE+"


PATIENCE = (1.5, 6, 30, 120)
"""Time limits in seconds; the longer ones are for busy machines."""


def test_a_file_that_does_not_finish(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = (
        "import subprocess, time\n"
        f"child = subprocess.Popen(['sleep', '600'])\nopen({str(mark)!r}, 'w').write(str(child.pid))\ntime.sleep(600)\n"
    )
    for seconds in PATIENCE:
        began = time.monotonic()
        with pytest.raises(SpecError, match=f"did not finish within {seconds} seconds"):
            spec.read(written(tmp_path, text), seconds=seconds)
        assert time.monotonic() - began < 500
        if mark.exists():
            break
    eventually(lambda: _gone(int(mark.read_text())))  # its children are killed too


def test_a_file_that_leaves_processes(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    text = (
        "import subprocess, threading, time\nchild = subprocess.Popen(['sleep', '600'], close_fds=False)\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\nthreading.Thread(target=time.sleep, args=[600]).start()\n"
        "spec = [{'a': 1}]\n"
    )
    began = time.monotonic()
    assert spec.read(written(tmp_path, text)).experiments[0].parameters == {"a": 1}
    assert time.monotonic() - began < 500
    eventually(lambda: _gone(int(mark.read_text())))


def test_a_file_that_closes_all_descriptors(tmp_path: Path) -> None:
    file = written(tmp_path, "import os, time\nos.closerange(0, 99)\ntime.sleep(600)\n")
    for seconds in PATIENCE:
        with pytest.raises(SpecError) as raised:
            spec.read(file, seconds=seconds)
        if "did not finish" not in raised.value.message:
            break
    assert "did not report its experiments and is still running" in raised.value.message


def _gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_it_does_not_affect_this_process(tmp_path: Path) -> None:
    before = {*sys.modules}, [*sys.path], dict(os.environ), Path.cwd()
    spec.read(written(tmp_path, "import os, munch, mrunner, wave\nos.environ['X'] = '1'\nos.chdir('/')\nspec = [{}]\n"))
    assert (sys.path, dict(os.environ), Path.cwd()) == before[1:]
    assert not {"munch", "mrunner", "wave", "conf"} & ({*sys.modules} - before[0])


def test_an_unknown_key_is_a_warning(tmp_path: Path) -> None:
    file = written(tmp_path, "spec = [{'parameters': {'a': 1}, 'tag': 'x'}, {'parameters': {}, 'tag': 'y'}]\n")
    (warning,) = spec.read(file).warnings
    assert warning.startswith(
        f"{file}: ignored the unknown key tag of an experiment; valid keys: project, name, script"
    )


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--spec: file '.*gone\.py' not found"):
        spec.read(tmp_path / "gone.py")


def test_many_are_quick(tmp_path: Path) -> None:
    file = written(
        tmp_path, "spec = [{'lr': 0.1, 'seed': i, 'name': str(i), 'a': i, 'b': None} for i in range(10_000)]\n"
    )
    began = time.perf_counter()
    assert len(spec.read(file).experiments) == 10_000
    assert time.perf_counter() - began < 30  # one second on an idle machine
