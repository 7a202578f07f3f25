"""Which declaration a run uses, and which folders of the project it imports from."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.contexts.project import Project
from yurt.envs.declared import Declared
from yurt.envs.of_runs import choose
from yurt.errors import UserError
from yurt.model.context import Context

CONTEXT = Context(name="big", type="slurm")
PYPROJECT = """\
[project]
name = "demo"
dependencies = ["six"]
[project.optional-dependencies]
fast = ["numpy"]
[dependency-groups]
dev = ["iniconfig"]
[build-system]
requires = []
build-backend = "b"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with two projects: one with requirements, one with a package in `src`."""
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path / "data"))
    files = {
        "repository/rl/requirements.txt": "six\n-e ../lib\n",
        "repository/rl/train.py": "",
        "repository/lib/pyproject.toml": PYPROJECT,
        "repository/lib/src/demo/__init__.py": "",
        "repository/lib/train.py": "",
        "repository/plain.py": "",
        "repository/.git/HEAD": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


def chosen(*argv: str, env: str | None = None) -> tuple[Declared | None, list[str]]:
    wanted = Context(name="big", type="slurm", env=env)
    return choose.chosen(wanted, argv, Project(), own_setup=False)


@pytest.mark.parametrize(
    ("where", "title", "sources"),
    [
        (("rl", "train.py"), "rl/requirements.txt", ["lib/src"]),
        (("lib", "train.py"), "pyproject.toml", ["lib/src"]),
        (("lib/src/demo", "../../train.py"), "pyproject.toml", ["lib/src"]),
        ((".", "rl/train.py"), "rl/requirements.txt", ["lib/src"]),
        ((".", "lib/train.py"), "pyproject.toml", ["lib/src"]),
        ((".", "plain.py"), "", []),
    ],
)
def test_the_nearest_declaration(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: tuple[str, str], title: str, sources: list[str]
) -> None:
    monkeypatch.chdir(folder / where[0])
    found, _notes = chosen("python", where[1])
    assert (found.title if found is not None else "") == title
    assert found is None or choose.sources(found, Project()) == sources


def test_a_lock_and_its_project_are_one_declaration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "lib" / "uv.lock").write_text('version = 1\nrequires-python = ">=3.9"\n')
    monkeypatch.chdir(folder / "lib")
    found, notes = chosen("train.py")
    assert found is not None and (found.kind, notes) == ("uv", [])
    (folder / "lib" / "requirements.txt").write_text("six\n")
    assert "not requirements.txt" in chosen("train.py")[1][0]


@pytest.mark.parametrize(
    ("name", "extras", "groups"),
    [("pyproject.toml[fast]", ["fast"], []), ("pyproject.toml[dev, fast]", ["fast"], ["dev"]), ("[dev]", [], ["dev"])],
)
def test_extras_and_groups(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, extras: list[str], groups: list[str]
) -> None:
    monkeypatch.chdir(folder / "lib")
    found, _notes = chosen("train.py", env=name)
    assert found is not None and (found.extras, found.groups) == (extras, groups)


@pytest.mark.parametrize("name", ["pyproject.toml[slow]", "pyproject.toml[fast", "[]"])
def test_parts_that_do_not_exist(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(folder / "lib")
    with pytest.raises(UserError) as caught:
        chosen("train.py", env=name)
    assert caught.value.code == "usage" and caught.value.hint
