"""The uploaded module: old Pythons, standard library only, small; any other yurt takes precedence."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import yurt
from tests.node.conftest import Run, pythons
from yurt.backends.job import module

SAYS = "import sys, yurt\nprint(yurt.__file__)\n"


SENT = {**module.files("dev"), **module.files("service"), **module.files("stage")}
OTHERS = {
    "mrunner": ("gin", "mrunner", "munch"),
    "munch": ("munch",),
    "yurt/node/service": ("ipykernel", "tensorboard", "werkzeug", "zmq"),
}
"""Packages that some of the files may import, by the start of their paths."""


@pytest.mark.parametrize("name", [name for name in SENT if name.endswith(".py")])
def test_old_pythons_can_read_it(name: str) -> None:
    tree = ast.parse(SENT[name], feature_version=(3, 6))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level
            imported.add(node.module)
    assert "__future__" not in imported, "annotations of 3.7"
    top = {each.partition(".")[0] for each in imported}
    others = {each for start, packages in OTHERS.items() if name.startswith(start) for each in packages}
    assert top <= sys.stdlib_module_names | {"yurt"} | others
    own = {each for each in imported if each.startswith(("yurt", "mrunner", "munch"))}
    assert own <= {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in SENT}


@pytest.mark.parametrize("python", pythons())
def test_on_each_python_there_is(run: Run, python: str) -> None:
    script = (
        "import yurt\nyurt.log(step=1, loss=float('nan'))\nassert yurt.params()['lr'] == 0.1\n"
        "with yurt.checkpointing() as saved:\n    saved.save('a', b'1')\n    assert saved.load('a') == b'1'"
    )
    subprocess.run([python, "-W", "error", "-c", script], env=run.environment, cwd=run.work, check=True)
    assert run.rows()[0]["loss"] == "NaN"


def test_every_file_is_uploaded() -> None:
    """Every file is uploaded with a dev node, a service or staged files, except what calls and tunnels send."""
    sent = {name[len("yurt/node/") :] for name in SENT if name.startswith("yurt/node/")}
    there = {
        each.relative_to(module.SOURCE).as_posix()
        for each in module.SOURCE.rglob("*")
        if each.suffix in (".py", ".sh", ".zsh", ".fish")
    }
    assert sent | {"shipped.py", "call.py", "staying.py", "tunnel.py"} == {
        each for each in there if not each.startswith("shim/")
    }


def test_it_is_small() -> None:
    assert len(zlib.compress(b"".join(module.files().values()))) < 8_000
    assert len(zlib.compress(b"".join(module.files("dev").values()))) < 82_000
    assert len(zlib.compress(b"".join(module.files("service").values()))) < 20_000
    assert len(zlib.compress(b"".join(module.files("stage").values()))) < 23_000


def test_the_name_depends_on_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    before = module.name()
    changed = {**module.files(), "yurt/__init__.py": b"# changed\n"}
    monkeypatch.setattr(module, "files", lambda _purpose: changed)
    module.name.cache_clear()
    assert module.name() != before
    monkeypatch.undo()
    module.name.cache_clear()
    assert module.name() == before


def test_the_installed_one_wins(run: Run) -> None:
    """In a virtual environment with yurt, which comes after PYTHONPATH."""
    script = (
        SAYS + "yurt.log(step=1)\nimport yurt.errors, yurt.node.metrics\nprint(yurt.errors.__file__, yurt.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=run.environment, cwd=run.work, capture_output=True, text=True, check=True
    )
    real = Path(yurt.__file__)
    assert done.stdout.split() == [str(real), str(real.parent / "errors.py"), yurt.__version__]
    assert [row["step"] for row in run.rows()] == [1]


def test_the_command_works_where_it_is_sent(run: Run) -> None:
    """The command yurt inside a run uses the installed package, not the uploaded files."""
    program = str(Path(sys.executable).parent / "yurt")
    done = subprocess.run([program, "--version"], env=run.environment, capture_output=True, text=True, check=True)
    assert yurt.__version__ in done.stdout


def test_another_package_of_this_name_wins(run: Run, tmp_path: Path) -> None:
    """It is later on sys.path, such as in site-packages; if it is broken, its own error is raised."""
    other = tmp_path / "site" / "yurt"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("mine = 1\n")
    (other / "below.py").write_text("x = 2\n")
    path = f"{run.shipped}{os.pathsep}{tmp_path / 'site'}"
    out, _err = run(SAYS + "import yurt.below\nprint(yurt.mine, yurt.below.x, hasattr(yurt, 'log'))", PYTHONPATH=path)
    assert out.split() == [str(other / "__init__.py"), "1", "2", "False"]
    (other / "__init__.py").write_text("import no_such_module_anywhere\n")
    assert "no_such_module_anywhere" in run("import yurt", PYTHONPATH=path, code=1)[1]


def test_the_projects_own_wins(run: Run) -> None:
    (run.work / "yurt.py").write_text("mine = 1\n")
    assert run(SAYS)[0].split() == [str(run.work / "yurt.py")]


def test_a_folder_of_this_name_does_not(run: Run, tmp_path: Path) -> None:
    for place in (run.work, tmp_path / "site"):
        (place / "yurt" / "data").mkdir(parents=True)
    path = f"{run.shipped}{os.pathsep}{tmp_path / 'site'}"
    assert run(SAYS, PYTHONPATH=path)[0].split() == [str(run.shipped / "yurt" / "__init__.py")]


def test_a_run_in_a_run_has_the_inner_one(run: Run, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(run.shipped, inner)
    out, _err = run(SAYS + "yurt.log(step=1)", PYTHONPATH=f"{run.shipped}{os.pathsep}{inner}")
    assert out.split() == [str(inner / "yurt" / "__init__.py")] and len(run.rows()) == 1


def test_the_package_offers_the_same(run: Run) -> None:
    script = (
        "from yurt import *\nlog(step=params()['lr'])\nimport yurt\nprint(yurt.checkpointing().folder)\nyurt.nothing"
    )
    environment = {**run.environment, "PYTHONPATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("AttributeError: module 'yurt' has no attribute 'nothing'\n")
    assert done.stdout == f"{run.folder / 'checkpoints'}\n" and json.loads(run.metrics.read_text())["step"] == 0.1
