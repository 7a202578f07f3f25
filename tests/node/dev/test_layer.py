"""Packages that a user adds on a dev node: real pip and uv, on top of a read-only environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pip
import pytest

from tests.wheels import tiny
from yurt.envs import uv_program
from yurt.node.dev.layer import NAME, Layer
from yurt.node.dev.place import Place

ADDRESS = "0123456789abcdef"


class DevNode:
    """A workspace on a node, and sessions in it."""

    def __init__(self, top: Path, below: Path) -> None:
        self.top, self.folder = top, top / "own"
        for each in (top / "work", self.folder):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        environment = {"PATH": f"{below}/bin:{os.environ['PATH']}", "HOME": str(top), "VIRTUAL_ENV": str(below)}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"  # as in a job
        place = Place(str(top / "work"), str(self.folder), str(self.folder))
        self.layer = Layer(place, environment)
        self.variables = self.layer.variables(environment)

    def __call__(self, command: str, **more: str) -> str:
        """Run a command in a session; return its output."""
        done = subprocess.run(
            ["sh", "-c", command], env=self.variables | more, cwd=self.top, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
        return done.stdout

    def added(self) -> list[str]:
        return [f"{each['name']}=={each['version']}" for each in self.layer.added() if each["requested"]]

    def files(self) -> Mapping[Path, int]:
        """Return the files of the workspace and when they were changed: what a backup compares."""
        return {each: each.lstat().st_mtime_ns for each in (self.top / "work").rglob("*")}


def made(folder: Path, *packages: Path) -> Path:
    """Make an environment as yurt builds it."""
    env = folder / "envs" / ADDRESS / "env-12ab34cd"
    words = ["venv", "-q", "--no-project", "--no-config", "--relocatable", "--python", sys.executable, str(env)]
    assert uv_program.run(words, folder=folder, variables={}).code == 0
    words = ["pip", "install", "-q", "--no-config", "--offline", "--python", f"{env}/bin/python", *map(str, packages)]
    done = uv_program.run(words, folder=folder, variables={"UV_CACHE_DIR": str(folder / "cache")})
    assert done.code == 0, done
    (env / "bin" / "below").write_text(f"#!{env}/bin/python\nimport base, sys\nprint(sys.prefix)\nimport extra\n")
    (env / "bin" / "below").chmod(0o755)
    subprocess.run(["chmod", "-R", "a-w", env], check=True)
    return env


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    folder = tmp_path / "shelf"
    tiny(folder, "base")
    tiny(folder, "base", "2.0", code="x = 2\n")
    tiny(folder, "extra", "3.1", requires=["helper"])
    tiny(folder, "helper")
    return folder


def test_what_pip_and_uv_install_is_in_the_workspace(tmp_path: Path, shelf: Path) -> None:
    below = made(tmp_path, shelf / "base-1.0-py3-none-any.whl")
    before = sorted(below.rglob("*"))
    node = DevNode(tmp_path / "n1", below)
    node.layer.make()
    assert node.layer.problem == "" and node.layer.added() == []
    (tmp_path / "n1" / "tools").mkdir()
    uv = tmp_path / "n1" / "tools" / "uv"
    uv.symlink_to(uv_program.find())
    options = f"--no-index --find-links '{shelf}'"
    node(f"{uv} pip install --no-config -q {options} extra")
    layer = str(tmp_path / "n1" / "work" / NAME)
    assert node("below") == f"{layer}\n", "programs of the environment import what was added"
    assert node("python -c 'import base, extra, helper; print(base.x, helper.__file__)'").startswith(f"1 {layer}/")
    assert node.added() == ["extra==3.1"] and [each["name"] for each in node.layer.added()] == ["extra", "helper"]
    assert sorted(below.rglob("*")) == before

    files = node.files()
    again = DevNode(tmp_path / "n1", below)
    again.layer.make()
    assert again.files() == files, "a new start changes nothing in the workspace"
    shutil.rmtree(node.folder / "layer")
    assert again.layer.is_gone()
    again.layer.make()
    assert again("below") == f"{layer}\n"
    assert again.layer.drop() and again.layer.added() == []
    assert node("python -c 'import base'") == ""
    assert "No module named 'extra'" in node("below 2>&1 || :")


def test_pip_and_another_place(tmp_path: Path, shelf: Path) -> None:
    """The workspace moves to a node where it has another path."""
    below = made(tmp_path, shelf / "base-1.0-py3-none-any.whl")
    (site,) = below.glob("lib/python*/site-packages")
    site.chmod(0o700)
    shutil.copytree(Path(pip.__file__).parent, site / "pip")
    (below / "bin").chmod(0o700)
    (below / "bin" / "pip").write_text(f"#!{below}/bin/python\nfrom pip._internal.cli.main import main\nmain()\n")
    (below / "bin" / "pip").chmod(0o700)
    node = DevNode(tmp_path / "n1", below)
    node.layer.make()
    node(f"pip install -q --no-index --find-links '{shelf}' extra 'base>1'", PIP_DISABLE_PIP_VERSION_CHECK="1")
    assert node.added() == ["base==2.0", "extra==3.1"]
    assert {each["name"]: each["instead_of"] for each in node.layer.added()}["base"] == "1.0"
    assert node("python -c 'import base; print(base.x)'") == "2\n"
    own = tmp_path / "n1" / "work" / NAME / "bin" / "own"
    own.write_text(f"#!{own.parent}/python\nimport extra, sys; print(sys.prefix)\n")
    own.chmod(0o755)

    other = DevNode(tmp_path / "n2", below)
    (tmp_path / "n2" / "work").rmdir()
    shutil.copytree(tmp_path / "n1" / "work", tmp_path / "n2" / "work", symlinks=True)
    shutil.rmtree(tmp_path / "n1")
    other.layer.make()
    assert other("own") == other("below") == f"{tmp_path}/n2/work/{NAME}\n"
    assert other.added() == ["base==2.0", "extra==3.1"]


def test_the_first_use_of_pip_installs_it(tmp_path: Path, shelf: Path) -> None:
    node = DevNode(tmp_path / "n1", made(tmp_path, shelf / "base-1.0-py3-none-any.whl"))
    node.layer.make()
    (tmp_path / "ensurepip.py").write_text("open(__file__.replace('ensurepip', 'pip'), 'w').write('print(\"pip\")')\n")
    assert node("pip", PYTHONPATH=str(tmp_path)) == "pip\n"


def test_where_it_does_nothing_or_fails(tmp_path: Path, shelf: Path) -> None:
    own = DevNode(tmp_path / "n1", tmp_path / "my-venv")
    own.layer.make()
    assert list((tmp_path / "n1" / "work").iterdir()) == [] and not own.layer.is_gone()
    assert own.variables["VIRTUAL_ENV"] == f"{tmp_path}/my-venv", "an environment of the user is his own"
    below = made(tmp_path, shelf / "base-1.0-py3-none-any.whl")
    (below / "share" / "jupyter").mkdir(parents=True)
    node = DevNode(tmp_path / "n2", below)
    assert node.variables["JUPYTER_PATH"] == f"{below}/share/jupyter" and "JUPYTERLAB_DIR" not in node.variables
    (tmp_path / "n2" / "work" / NAME).write_text("in the way")
    node.layer.make()
    assert node.layer.problem.startswith("packages cannot be added on this dev node: ") and not node.layer.is_gone()
    assert node("command -v below") == f"{below}/bin/below\n", "programs of the environment still work"
