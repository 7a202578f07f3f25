"""Dev nodes on this machine: the holder as a process, with a disk of its own and a shared folder for the backups."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from yurt.backends.job import module
from yurt.lifecycle.plan.holders import START
from yurt.testing.waiting import eventually

PYTHON = os.environ.get("YURT_NODE_PYTHON") or str(Path(sys.executable).resolve())

UNUSED = "from yurt.node.dev import idle; idle.cpu_times = lambda _s: {}; idle.terminals.last_use = lambda: 0.0; "
"""For a node that only the holder uses: this machine is busy with other tests."""


class DevNode:
    """One start of a holder. `disk` is the disk of its node; `unused`: no other process uses the node."""

    def __init__(self, shipped: Path, top: Path, disk: str, run: str, *, unused: bool = False, **config: Any) -> None:
        self.run_folder = top / "runs" / run
        self.run_folder.mkdir(parents=True, exist_ok=True)
        self.root, self.workspace = top / disk, top / disk / "work"
        self.backups = top / "shared" / "workspaces" / "default"
        self._words = [PYTHON, "-I", "-S", "-c", START.replace("sys.exit", UNUSED + "sys.exit") if unused else START]
        self._words.append(str(shipped))
        given = {"name": "default", "workspace": "work", "root": str(self.root), "backups": str(self.backups), **config}
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(top),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "YURT_DEV": json.dumps({"beat": 0.4, "retry": 0.2, **given}),
            "YURT_RUN_DIR": str(self.run_folder),
            "YURT_RUN_ID": run,
            "MODULE_ROOT": "it's here",
            "MY_TOKEN": "hidden",
        }
        with (self.run_folder / "out.log").open("ab") as out, (self.run_folder / "err.log").open("ab") as err:
            self.process = subprocess.Popen(
                [*self._words, "hold"],
                env=self._environment,
                cwd=top,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def status(self) -> dict[str, Any]:
        """What dev.json says; empty if it is not there yet."""
        file = self.run_folder / "dev.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found

    @property
    def log(self) -> str:
        return (self.run_folder / "out.log").read_text() + (self.run_folder / "err.log").read_text()

    def ready(self) -> DevNode:
        """Wait until the workspace is there."""

        def is_ready() -> bool:
            assert self.process.poll() is None, self.log
            return bool(self.status.get("phase") == "ready")

        eventually(is_ready, pause=0.02)
        return self

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a request; return the last line of the answer."""
        done = subprocess.run(
            [*self._words, "ask", json.dumps({"do": do, **more})],
            env={"PATH": os.environ["PATH"], "YURT_RUN_DIR": str(self.run_folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.stdout, done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        assert (done.returncode == 0) == bool(answer.get("ok"))
        if do == "down" and answer.get("ok"):  # it answers before it ends, and no other start may find it
            self.process.wait(60)
        return answer

    def signal(self, number: int, *, group: bool = True) -> int:
        """Send a signal to all processes of the job, as a scheduler does; return the exit code of the holder."""
        (os.killpg if group else os.kill)(self.process.pid, number)
        return self.process.wait(60)

    def ended(self) -> int:
        return self.process.wait(60)

    def why(self) -> str:
        """Wait for a start that fails; return the reason."""
        assert self.process.wait(60) == 78, self.log
        return (self.run_folder / "why").read_text()

    def said(self) -> str:
        """Return what it says about its end, for the reason of the run."""
        return (self.run_folder / "said").read_text().strip()

    def program(self, *words: str) -> dict[str, Any]:
        """Run another word of the program; return the last line of its answer."""
        done = subprocess.run([*self._words, *words], env=self._environment, capture_output=True, check=False)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def numbers(self) -> list[int]:
        return [each["number"] for each in self.program("list", str(self.backups))["versions"]]


class DevNodes:
    """Starts dev nodes that share a disk for their backups."""

    def __init__(self, shipped: Path, top: Path) -> None:
        self._shipped, self.top = shipped, top
        self.started: list[DevNode] = []

    def __call__(self, disk: str = "n1", run: str = "", **config: Any) -> DevNode:
        node = DevNode(self._shipped, self.top, disk, run or f"r{len(self.started) + 1}", **config)
        self.started.append(node)
        return node


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as it is on a node."""
    folder = tmp_path_factory.mktemp("shipped")
    for name, content in module.files("dev").items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short path: that of a socket has at most about 100 characters."""
    with tempfile.TemporaryDirectory(prefix="yd", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def dev(shipped: Path, tmp_path: Path) -> Iterator[DevNodes]:
    nodes = DevNodes(shipped, tmp_path)
    yield nodes
    for each in nodes.started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()
