"""The module `yurt` as on a cluster: in its own folder, used by a python3 without an installed yurt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from yurt.backends.job import module

PYTHON = os.environ.get("YURT_NODE_PYTHON") or str(Path(sys.executable).resolve())
"""Not the one of the virtual environment, where yurt is installed. Set YURT_NODE_PYTHON to try an old one."""


class Run:
    """A run folder with scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "run"
        self.folder.mkdir()
        self.started = 0
        self.work = folder / "work"
        self.work.mkdir()
        self.shipped = folder / "node"
        for name, content in module.files().items():
            file = self.shipped / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        (self.folder / "params.json").write_text('{"lr": 0.1, "name": "ü"}')
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.shipped),
            "PYTHONDONTWRITEBYTECODE": "1",
            "YURT_RUN_DIR": str(self.folder),
            "YURT_PARAMS": str(self.folder / "params.json"),
            "YURT_CHECKPOINTS": str(self.folder / "checkpoints"),
            "YURT_RESTARTS": "0",
        }

    @property
    def metrics(self) -> Path:
        return self.folder / "metrics.jsonl"

    def rows(self) -> list[dict[str, Any]]:
        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        # A process that opens the file while another one writes a line begins with an empty one, which readers skip.
        lines = [line for line in self.metrics.read_bytes().splitlines() if line]
        return [json.loads(line, parse_constant=refuse) for line in lines]

    def start(self, script: str, *, outside: bool = False, **variables: str) -> subprocess.Popen[str]:
        self.started += 1
        file = self.work / f"script{self.started}.py"  # an earlier one may not have been read yet
        file.write_text(script)
        names = ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if outside else tuple(self.environment)
        return subprocess.Popen(
            [PYTHON, str(file)],
            cwd=self.work,
            env={**{name: self.environment[name] for name in names}, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, script: str, *, code: int = 0, **more: Any) -> tuple[str, str]:
        process = self.start(script, **more)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (process.returncode, out, err)
        return out, err


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@cache
def pythons() -> list[Any]:
    """Return the Pythons of this machine; only the oldest and the newest are tried by default."""
    versions = {
        int(each.name.split(".")[1]): str(each / "bin/python3") for each in Path.home().glob(".pyenv/versions/3.*")
    }
    for minor in set(range(6, 15)) - set(versions):
        found = shutil.which(f"python3.{minor}")
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            versions[minor] = found
    outer = (min(versions), max(versions))
    slow = [pytest.mark.slow]
    return [
        pytest.param(versions[minor], id=f"3.{minor}", marks=[] if minor in outer else slow)
        for minor in sorted(versions)
    ]
