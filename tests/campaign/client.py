"""A user's machine: its own index, its own ssh connections, and calls of the yurt command."""

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
"""Seconds after which a yurt command that hangs is killed and reported."""


class Client:
    """One index of runs for one cluster, and the processes that use it."""

    expected: tuple[int, ...] = (0, 4, -signal.SIGKILL)
    """Exit codes that a campaign expects of any command."""

    def __init__(self, name: str, *, data: Path, runtime: Path, project: Path, log: Callable[[str], None]) -> None:
        self.name, self.data, self.runtime, self.project = name, data, runtime, project
        self.log = log
        self.number = 0
        self.numbers: dict[int, int] = {}
        self.wrong: list[str] = []
        """Messages of commands with an unexpected exit code, such as a refused run or a bug in yurt."""
        self.environment = {
            **os.environ,
            "YURT_DATA_HOME": str(data),
            "YURT_RUNTIME_DIR": str(runtime),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }

    def copy(self, name: str) -> Client:
        """Copy the index to another machine, which does not know about this one."""
        data, runtime = self.data.with_name(name), self.runtime.with_name(name)
        shutil.copytree(self.data, data)
        return Client(name, data=data, runtime=runtime, project=self.project, log=self.log)

    def start(self, *arguments: str, clocks: str = "", program: bool = False) -> subprocess.Popen[bytes]:
        """Start a command. `program`: it starts the ssh program for each session, as with a wrapper of the user."""
        # Write to a file: child processes of a killed yurt would keep a pipe open.
        self.number += 1
        with self._output_file(self.number).open("wb") as output:
            process = subprocess.Popen(
                [YURT, *arguments],
                cwd=self.project,
                env={**self.environment, "YURT_CLOCKS": f"rest=0 {clocks}", **(self._wrapper() if program else {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.numbers[process.pid] = self.number
        return process

    def _wrapper(self) -> dict[str, str]:
        """Return variables with which `ssh` is a script."""
        folder = self.data.with_name(f"{self.name}.bin")
        folder.mkdir(exist_ok=True)
        (folder / "ssh").write_text(f'#!/bin/bash\nexec -a ssh {shutil.which("ssh")} "$@"\n')
        (folder / "ssh").chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def _output_file(self, number: int) -> Path:
        return self.data.with_name(f"{self.name}.{number}.out")

    def end(self, process: subprocess.Popen[bytes], *, seconds: float = PATIENCE) -> str:
        """Wait for a yurt process and return its output. Kills it after `seconds`."""
        late = ""
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            late = f"(killed: timed out after {seconds:.0f} s)"
        file = self._output_file(self.numbers.pop(process.pid))
        output = " ".join([*file.read_text(errors="replace").split(), late])
        file.unlink()
        self.log(f"{self.name}: exit code {process.returncode}: {output[:300]}")
        if process.returncode not in self.expected:
            self.wrong.append(f"{self.name}: yurt ended with exit code {process.returncode}: {output[:300]}")
        return output

    def call(self, *arguments: str, seconds: float = PATIENCE) -> str:
        return self.end(self.start(*arguments), seconds=seconds)

    def once(self) -> None:
        """Run one round of the agent."""
        self.call("agent", "once")

    def entries(self) -> list[Entry]:
        """Return all runs of the index, newest first."""
        if not (self.data / "yurt.db").exists():
            return []
        with Store(str(self.data / "yurt.db")) as store:
            return list(store.newest())

    def waiting(self) -> list[str]:
        """Return runs that may not be submitted yet, and runs whose cancellation has not reached the site."""
        states = [(each.run.id, each.status) for each in self.entries() if not each.status.final]
        return [run for run, status in states if status.cancel_requested or status.state in ("waiting", "submitting")]

    def ssh(self) -> Iterator[tuple[int, str]]:
        """Yield the client's ssh processes: (pid, 'master' or 'session')."""
        mark = str(self.runtime).encode() + b"/"
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if mark in command and command.startswith(b"ssh"):
                    yield int(entry.name), "master" if b"[mux]" in command or b"\0-M\0" in command else "session"

    def kill_ssh(self, *kinds: str) -> int:
        """Kill the client's ssh processes of these kinds; return their number."""
        found = [pid for pid, kind in self.ssh() if kind in kinds]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(found)

    def disconnect(self) -> None:
        """Close all connections; the next command opens a new one."""
        while self.kill_ssh("master", "session"):
            time.sleep(0.02)
