"""An environment of which somebody has edited a file is not as it was built."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from yurt.backends import scripts
from yurt.backends.shell.envs import ShellEnvs
from yurt.transport.local import LocalHost

SITE = "env-1/lib/python3.11/site-packages"


@pytest.fixture
def env(tmp_path: Path) -> Path:
    folder = tmp_path / "storage/yurt/envs/0123456789abcdef"
    for name in ("env-1/bin/python", f"{SITE}/six.py", f"{SITE}/pack/__init__.py", f"{SITE}/pack/data.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n")
    (folder / "env-1/bin/python").chmod(0o755)
    (folder / SITE / "six-1.17.0.dist-info").mkdir()
    (folder / "env-1/.packages").write_text("six-1.17.0\n")
    (folder / "ready").write_text("env-1 8 10\n")
    age(folder, 100)
    for above in (tmp_path / "storage", tmp_path / "storage/yurt"):
        above.chmod(0o700)
    return folder


def age(folder: Path, seconds: int) -> None:
    """Make all files older."""
    for each in (*folder.rglob("*"), folder):
        at = each.stat().st_mtime - seconds
        os.utime(each, (at, at))


def condition(env: Path, *, edits: bool = True) -> tuple[str, str]:
    (state,) = ShellEnvs(LocalHost()).look([str(env)], edits=edits)
    return state.condition, state.change


def test_an_edited_file_is_named(env: Path) -> None:
    assert condition(env) == ("ready", "")
    (env / SITE / "pack/data.json").write_text("{}")  # a package may write data of its own
    (env / SITE / "pack/__pycache__").mkdir()
    (env / SITE / "pack/__pycache__/one.pyc").write_text("x")
    assert condition(env) == ("ready", "")
    (env / SITE / "pack/__init__.py").write_text("edited")
    assert condition(env) == ("changed", "pack/__init__.py was edited")
    (env / SITE / "six.py").write_text("edited")
    changed, what = condition(env)
    assert changed == "changed" and set(what.split(", ")) == {"pack/__init__.py was edited", "six.py was edited"}


def test_an_edited_program_is_named(env: Path) -> None:
    (env / "env-1/bin/torchrun").write_text("edited")
    assert condition(env) == ("changed", "bin/torchrun was edited")


def test_files_are_looked_at_once_an_hour(env: Path) -> None:
    """It takes a shared disk seconds: not each submission may wait for it."""
    assert condition(env, edits=False) == ("ready", "")
    (env / SITE / "six.py").write_text("edited")
    assert condition(env, edits=False) == ("ready", "")
    age(env / "checked", 3700)
    assert condition(env, edits=False) == ("changed", "six.py was edited")
    assert condition(env, edits=False) == ("changed", "six.py was edited"), "until it is built again"


def test_the_same_text_in_a_shell_without_bash(env: Path) -> None:
    (env / SITE / "six.py").write_text("edited")
    script = scripts.text("env_state.sh", "job") + f"env_is_whole '{env}' && echo whole; env_edits '{env}/env-1'"
    done = subprocess.run(["dash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("six.py was edited\n", "")
