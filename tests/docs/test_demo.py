"""`make demo` after yurt is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_demo_runs_and_leaves_nothing_behind(tmp_path: Path) -> None:
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "YURT_CONTEXT": "the-users-own"}
    for name in ("YURT_CONFIG_HOME", "YURT_DATA_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "demo.py")],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    typed = re.findall(r"^\$ (.*)$", done.stdout, re.MULTILINE)
    assert typed[:-1] == [
        "yurt run -f train.py -- --lr 0.1",
        "yurt run train.py -- --lr 0.01",
        "yurt wait -",
        "yurt ps",
        "yurt show -",
        "yurt logs --tail 5 -",
    ]
    assert len(re.findall(r"^\S+ +local +completed .* train\.py --lr 0\.0?1$", done.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^epoch 8: loss 0\.", done.stdout, re.MULTILINE)) == 2
    assert " model.json\n" in done.stdout and "yurt context add" in done.stdout and "yurt lab up" in done.stdout
    assert not any(home.iterdir()) and not any(temporary.iterdir())


def test_demo_without_git(tmp_path: Path) -> None:
    """The demo fails before it creates any file."""
    environment = {**os.environ, "PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    argv = [sys.executable, str(ROOT / "tools" / "demo.py")]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1 and "yurt needs git, which is not installed" in done.stderr
    assert not any(tmp_path.iterdir())
