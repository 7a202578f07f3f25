"""contexts.yaml: what is read, what is kept when it is written, what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from yurt.config import contexts, paths
from yurt.errors import UserError
from yurt.model.context import Context

MINE = """\
# my clusters
contexts:
  big:  # the one in the basement
    type: slurm
    slurm_url: me@big.example
    ssh_options: ["-J", 'gate']   # through the gate
current_context: big
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "config" / "contexts.yaml"
    found.parent.mkdir()
    found.write_text(MINE)
    return found


def test_no_file_is_no_context(tmp_path: Path) -> None:
    assert contexts.load(tmp_path / "none.yaml").contexts == {}


def test_put_and_remove_keep_every_comment(file: Path) -> None:
    new = Context(name="alpha", type="slurm", slurm_url="alice@alpha", ssh_options=("-F", "/a b/c"), lab="default")
    contexts.put(file, [new])
    assert contexts.load(file).contexts["alpha"] == new
    assert contexts.load(file).contexts["big"].ssh_options == ("-J", "gate")
    assert all(line in file.read_text() for line in MINE.splitlines())
    once = file.stat().st_mtime_ns, file.read_text()
    contexts.put(file, [new])
    assert file.read_text() == once[1]
    contexts.remove(file, ["alpha", "never-there"])
    assert file.read_text() == MINE


def test_removing_the_current_context_forgets_it(file: Path) -> None:
    contexts.remove(file, ["big"])
    assert contexts.load(file).current_context is None


def test_first_context_makes_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "contexts.yaml"
    contexts.put(file, [Context(name="x", type="local")])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contexts: [", "not valid YAML"),
        ("contexts: {a: {type: slurm, colour: red}}", "colour"),
        ("contexts: {a: {type: cloud}}", "cloud"),
        ("contexts: {a: {}}", "type"),
        ("contexts: {a: 3}", "object"),
        ("- a\n- b", ""),
        ("current_context: 3", "str"),
    ],
)
def test_a_file_with_a_fault_is_named_and_left_alone(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "contexts.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        contexts.put(file, [Context(name="x", type="local")])
    assert str(file) in caught.value.message and said in caught.value.message
    assert caught.value.code == "config-invalid"
    assert file.read_text() == text and [*tmp_path.iterdir()] == [file]


def test_a_write_that_fails_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        contexts.put(file, [Context(name="x", type="local")])
    assert file.read_text() == MINE and [*file.parent.iterdir()] == [file]


def test_homes_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("YURT_DATA_HOME", "~/d")
    assert paths.config_home() == tmp_path / "c"
    assert paths.data_home() == Path("~/d").expanduser()
    monkeypatch.delenv("YURT_CONFIG_HOME")
    assert paths.config_home().name == "yurt"
