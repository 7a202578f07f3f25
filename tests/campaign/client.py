"""A person's machine: an index of its own, ssh connections of its own, and yurt as a person calls it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from yurt.store import Entry, Store

ROOT = Path(__file__).parents[2]
YURT = str(Path(sys.executable).parent / "yurt")
PATIENCE = 150.0
"""Seconds after which a yurt that has not come back is killed, which is said."""


class Client:
    """One index of runs for one cluster, and the processes that use it."""

    def __init__(self, name: str, *, data: Path, runtime: Path, project: Path, log: Callable[[str], None]) -> None:
        self.name, self.data, self.runtime, self.project = name, data, runtime, project
        self.log = log
        self.number = 0
        self.numbers: dict[int, int] = {}
        self.wrong: list[str] = []
        """What yurt said that it must never say here: that a site refuses a run, or that yurt has a bug."""
        self.environment = {
            **os.environ,
            "YURT_DATA_HOME": str(data),
            "YURT_RUNTIME_DIR": str(runtime),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }

    def copy(self, name: str) -> Client:
        """The same index on another machine: nothing here keeps the two apart."""
        data, runtime = self.data.with_name(name), self.runtime.with_name(name)
        shutil.copytree(self.data, data)
        return Client(name, data=data, runtime=runtime, project=self.project, log=self.log)

    def start(self, *arguments: str, clocks: str = "") -> subprocess.Popen[bytes]:
        # Into a file: what a killed yurt leaves behind would keep a pipe open.
        self.number += 1
        with self._said(self.number).open("wb") as output:
            process = subprocess.Popen(
                [YURT, *arguments],
                cwd=self.project,
                env={**self.environment, "YURT_CLOCKS": clocks},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.numbers[process.pid] = self.number
        return process

    def _said(self, number: int) -> Path:
        return self.data.with_name(f"{self.name}.{number}.out")

    def end(self, process: subprocess.Popen[bytes], *, seconds: float = PATIENCE) -> str:
        """Wait for a yurt; returns what it said. One that hangs is killed."""
        late = ""
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            late = f"(killed: it had not come back in {seconds:.0f} s)"
        output = self._said(self.numbers.pop(process.pid))
        said = " ".join([*output.read_text(errors="replace").split(), late])
        output.unlink()
        self.log(f"{self.name}: code {process.returncode}: {said[:300]}")
        if process.returncode not in (0, 4, -signal.SIGKILL):
            self.wrong.append(f"{self.name}: yurt came back with code {process.returncode}: {said[:300]}")
        return said

    def call(self, *arguments: str, seconds: float = PATIENCE) -> str:
        return self.end(self.start(*arguments), seconds=seconds)

    def once(self) -> None:
        """One round of the agent."""
        self.call("agent", "once")

    def entries(self) -> list[Entry]:
        """All runs of the index, the newest first."""
        if not (self.data / "yurt.db").exists():
            return []
        with Store(str(self.data / "yurt.db")) as store:
            return list(store.newest())

    def waiting(self) -> list[str]:
        """Runs that have not surely gone out, and those of which a site must still be told that they are cancelled."""
        states = [(each.run.id, each.status) for each in self.entries() if not each.status.final]
        return [run for run, status in states if status.cancel_requested or status.state in ("waiting", "submitting")]

    def ssh(self) -> Iterator[tuple[int, str]]:
        """Its ssh processes here: (pid, master or session)."""
        mark = str(self.runtime).encode() + b"/"
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                if mark in words and words.startswith(b"ssh"):
                    yield int(entry.name), "master" if b"[mux]" in words or b"\0-M\0" in words else "session"

    def kill_ssh(self, *kinds: str) -> int:
        """Kill its ssh processes of these kinds; returns how many there were."""
        found = [pid for pid, kind in self.ssh() if kind in kinds]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(found)

    def hang_up(self) -> None:
        """End every connection: the next command opens a new one."""
        while self.kill_ssh("master", "session"):
            time.sleep(0.02)
