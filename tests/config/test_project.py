"""The project that contains a folder: its file, its settings, its faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from yurt.config import project
from yurt.errors import UserError

YAML = """\
# mine
name: paper
partition: gpu
resources:
  gpu: a100:2
env: {SEED: 3}
"""

TOML = """\
[project]
name = "x"

[tool.yurt]
partition = "gpu"
ntasks = 4
tags = ["a"]
resources.cpu = 8

[tool.yurt.variables]
SEED = 3
LR = 0.5
FAST = true
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "work" / "paper" / "src"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return tmp_path / "home"


def test_none() -> None:
    assert project.find() is None


def test_yaml_found_from_below(home: Path) -> None:
    file = home / "work" / "paper" / "yurt.yaml"
    file.write_text(YAML)
    found = project.find()
    assert found is not None and found == project.find(file.parent)
    assert (found.folder, found.file, found.name) == (file.parent, file, "paper")
    assert found.settings == {"partition": "gpu", "resources": {"gpu": "a100:2"}, "variables": {"SEED": "3"}}
    assert {key: found.lines[key] for key in found.settings} == {"partition": 3, "resources": 4, "variables": 6}


def test_toml_and_precedence(home: Path) -> None:
    file = home / "work" / "pyproject.toml"
    file.write_text(TOML)
    found = project.find()
    assert found is not None and found.file == file and found.name == "work"
    assert found.settings == {
        "partition": "gpu",
        "ntasks": 4,
        "tags": ("a",),
        "resources": {"cpu": 8},
        "variables": {"SEED": "3", "LR": "0.5", "FAST": "true"},
    }
    assert {key: found.lines[key] for key in found.settings} == {
        "partition": 5,
        "ntasks": 6,
        "tags": 7,
        "resources": 8,
        "variables": 10,
    }
    (home / "work" / "paper" / "pyproject.toml").write_text("[tool.black]\n# not for yurt\n")
    assert project.find() == found
    (home / "work" / "yurt.yaml").write_text("")
    empty = project.find()
    assert empty is not None and empty.file.name == "yurt.yaml" and empty.settings == {}


def test_the_search_stops_at_the_home_folder(home: Path) -> None:
    (home / "yurt.yaml").write_text(YAML)
    (home.parent / "yurt.yaml").write_text(YAML)
    assert project.find() is None
    found = project.find(home)
    assert found is not None and found.folder == home


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "yurt.yaml",
            "partitoin: x\n",
            "1: partitoin is not a key of a project; did you mean 'partition'? (example: `partition: main`)",
        ),
        (
            "yurt.yaml",
            "name: x\nslurm_url: y\n",
            "2: slurm_url is a key of a context, not of a project; move it to contexts.yaml",
        ),
        ("yurt.yaml", "zzz: y\n", f"1: zzz is not a key of a project; valid keys: {', '.join(project.KEYS)}"),
        (
            "yurt.yaml",
            "resources:\n  cpu: x\n",
            "2: resources.cpu must be a positive integer, not 'x' (example: `cpu: 4`)",
        ),
        ("yurt.yaml", "time: 1\ntime: 2\n", "2: time is set twice, in lines 1 and 2; keep one"),
        ("yurt.yaml", "a: [\n", "2: the file is not valid YAML: while parsing a flow node, did not find expected node"),
        ("yurt.yaml", "- a\n", "1: the file must be a mapping of settings (example: `partition: main`)"),
        (
            "pyproject.toml",
            "[tool.yurt]\n\nntasks = 'x'\n",
            "3: tool.yurt.ntasks must be a positive integer, not 'x' (example: `ntasks: 4`)",
        ),
        (
            "pyproject.toml",
            "[tool.yurt.resources]\ncpus = 1\n",
            "2: tool.yurt.resources.cpus is not a key of resources; did you mean 'cpu'? (example: `cpu: 4`)",
        ),
        ("pyproject.toml", "[tool.yurt\n", "1: the file is not valid TOML: Expected ']' at the end of a table decl"),
        ("pyproject.toml", "[tool]\nyurt = 3\n", "2: tool.yurt must be a mapping of settings (example: `partition"),
    ],
)
def test_faults(home: Path, name: str, text: str, said: str) -> None:
    file = home / "work" / name
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        project.find()
    assert caught.value.message.startswith(f"{file}:{said}")
    assert caught.value.code == "config-invalid" and str(file.name) in caught.value.hint


def test_two_faults(home: Path) -> None:
    file = home / "work" / "yurt.yaml"
    file.write_text("ntasks: x\nzzz: 1\n")
    with pytest.raises(UserError, match=r"has 2 errors:\n  line 1: ntasks must .*\n  line 2: zzz is not a key"):
        project.find()
