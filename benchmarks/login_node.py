"""What commands cost the login node of alpha: CPU, programs started, ssh sessions, bytes, files.

The lab runs on this machine, so the processes of its login node are visible here, in a network namespace of their own.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.side_by_side import Bench

SERVER = re.compile(r"execve\(\"[^\"]*/sshd(-session)?\"")
"""sshd starts itself again for each connection."""

SESSION = re.compile(r"execve\(\"/bin/bash\", \[\"-?bash\"")
"""The login shell of alice, which sshd starts for each session; yurt's scripts run in sh."""

FOLDERS = "/home/alice /lustre/scratch/alice /lustre/project/alice"


class Cost(NamedTuple):
    """What one action cost: on the login node, between both machines, and on this machine."""

    connections: int
    """ssh connections."""
    sessions: int
    """ssh sessions: requests over a connection."""
    sent: int
    """Bytes on the wire to the site."""
    received: int
    files: int
    """Files and folders that remain on the site, less those removed."""
    programs: int
    """Programs started on the login node."""
    here: int
    """Programs started on this machine, yurt included."""


class LoginNode:
    """The login node of alpha, seen from this machine."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._shell = [*bench.ssh, "alice@alpha"]
        self._space = bench.call([*self._shell, "readlink /proc/self/ns/net"]).strip()
        self._outside = self._interface()

    def servers(self) -> list[int]:
        """Return the processes of its sshd: the listener, and those of each connection."""
        found = []
        for process in _processes(lambda words: "sshd" in words[0]):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{process}/ns/net") == self._space:
                    found.append(process)
        return found

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of sshd and of all programs that have run in its connections."""
        ticks = 0
        for process in self.servers():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def measure(self, argv: list[str], folder: Path | None = None, *, seconds: float = 0) -> Cost:
        """Run a command and return what it cost. With `seconds`, interrupt it after so long, as the user does."""
        files = self._files()
        site, own = self.bench.home / "site.traces", self.bench.home / "own.traces"
        with self._traced(site):
            before = self._traffic()
            with _emptied(own) as prefix:
                self._run(argv, folder, prefix, seconds)
            self._settle(site)
            after = self._traffic()
        programs = _started(site)
        servers = [line for line in programs if SERVER.search(line)]
        return Cost(
            connections=len(servers),
            sessions=sum(SESSION.search(line) is not None for line in programs),
            sent=after[0] - before[0],
            received=after[1] - before[1],
            files=self._files() - files,
            programs=len(programs) - len(servers),
            here=len(_started(own)),
        )

    def _run(self, argv: list[str], folder: Path | None, prefix: str, seconds: float) -> None:
        """Run a command and record the programs that it starts, until it ends; a connection that it opens stays."""
        # -D: strace follows what stays, but nothing waits for it. So its output is a file, not a pipe.
        traced = ["strace", "-D", "-ff", "-qq", "-e", "trace=execve", "-o", prefix, *argv]
        output = self.bench.home / "output"
        with output.open("w") as target:
            done = subprocess.run(
                ["timeout", "-s", "INT", str(seconds), *traced] if seconds else traced,
                cwd=folder or self.bench.home,
                env=self.bench.environment,
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=target,
                check=False,
            )
        for process in _processes(lambda words: words[:1] == ["strace"] and prefix in words):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        if done.returncode and not seconds:
            raise RuntimeError(f"{' '.join(argv)[:200]}: {output.read_text()[-300:]}")

    def _interface(self) -> str:
        """Return the interface through which this machine reaches the login node."""
        address = self.bench.call([*self._shell, "echo $SSH_CONNECTION"]).split()[2]
        shown = self.bench.call([*self._shell, "ip -o -4 address"])
        return next(line.split()[1] for line in shown.splitlines() if f" {address}/" in line)

    def _traffic(self) -> tuple[int, int]:
        """Return the bytes that the login node has received from outside, and sent."""
        for line in Path(f"/proc/{self.servers()[0]}/net/dev").read_text().splitlines():
            name, _, rest = line.strip().partition(":")
            if name == self._outside:
                fields = rest.split()
                return int(fields[0]), int(fields[8])
        raise LookupError(self._outside)

    def _files(self) -> int:
        return int(self.bench.call([*self._shell, f"find {FOLDERS} 2> /dev/null | wc -l"]))

    @contextlib.contextmanager
    def _traced(self, folder: Path) -> Iterator[None]:
        """Record the programs that start on the login node while the block runs."""
        with _emptied(folder) as prefix:
            chosen = [word for process in self.servers() for word in ("-p", str(process))]
            argv = ["strace", "-ff", "-qq", "-e", "trace=execve", "-o", prefix, *chosen]
            with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as tracer:
                _wait(lambda: all(_tracer(each) == tracer.pid for each in self.servers()))
                try:
                    yield
                finally:
                    tracer.terminate()

    @staticmethod
    def _settle(folder: Path) -> None:
        """Wait until no program has started on the login node for a second: what runs there after the answer counts."""
        count, since = -1, time.monotonic()
        while time.monotonic() - since < 1:
            if (now := sum(1 for _file in folder.iterdir())) != count:
                count, since = now, time.monotonic()
            time.sleep(0.05)


def _processes(chosen: Callable[[list[str]], bool]) -> list[int]:
    """Return the processes of this machine whose words a function accepts."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
            if chosen(words):
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def _emptied(folder: Path) -> Iterator[str]:
    """Yield the prefix of strace's files, one for each process, in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield f"{folder}/trace"


def _started(folder: Path) -> list[str]:
    """Return the lines of strace about programs that were started."""
    lines = [line for file in folder.iterdir() for line in file.read_text(errors="replace").splitlines()]
    return [line for line in lines if line.startswith("execve(") and line.endswith(" = 0")]


def _tracer(process: int) -> int:
    with contextlib.suppress(OSError):
        found = re.search(r"TracerPid:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
        return int(found[1]) if found else 0
    return 0


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not until():
        if time.monotonic() > end:
            raise TimeoutError("strace did not start")
        time.sleep(0.02)
