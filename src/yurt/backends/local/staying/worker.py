"""The process that makes calls, seen from its runner: start it, give it calls, learn how they end, signal it.

The process is that of job.sh for its first task, so it has the environment of the run. The program in it is
yurt.node.call. Over a socket, it sends `starts` before the first call and waits for an answer. It gets a line of JSON
for each further call, and answers `begins` before anything of the user's runs. After a call it sends `ended CODE` if it
can take another one; if not, it exits, as the process of a single call does.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
from typing import Any

from yurt.backends.local import process, waiter

CHANNEL = "YURT_CALL_CHANNEL"
"""The variable with the file descriptor of the socket."""


class Worker:
    """A process for calls. Its group contains all processes that calls have started."""

    def __init__(self, sweep: str, folder: str, number: int, *, nonce: str, mask: int, logs: tuple[int, int]) -> None:
        own, other = socket.socketpair()
        shell = shutil.which("bash") or "/bin/sh"
        variables = {"YURT_TASK_INDEX": str(number), "YURT_RESTARTS": "0", CHANNEL: str(other.fileno())}
        try:
            self._process = subprocess.Popen(
                [shell, f"{sweep}/{waiter.JOB}", "inside", nonce],
                stdin=subprocess.DEVNULL,
                stdout=logs[0],
                stderr=logs[1],
                cwd=folder,
                env={**os.environ, **variables},
                pass_fds=[other.fileno()],
                start_new_session=True,
                umask=mask,
                restore_signals=True,
            )
        except BaseException:
            own.close()
            raise
        finally:
            other.close()
        self.channel = own
        self.first = number
        self.pid = self._process.pid
        self.born = process.born(self.pid) or 0
        self._said = b""

    def give(self, call: dict[str, Any]) -> bool:
        """Have it make a call. Returns False if it has ended before the call began."""
        try:
            self.channel.sendall(json.dumps(call).encode() + b"\n")
        except OSError:
            return False
        while self.status() is None:
            if select.select([self.channel], [], [], 1.0)[0]:
                return self.hear() == "begins"
        return self.hear() == "begins"

    def go(self) -> None:
        """Have it make its first call."""
        with contextlib.suppress(OSError):
            self.channel.sendall(b"{}\n")

    def hear(self) -> str:
        """Return the next line that it has sent; empty if there is none."""
        if b"\n" not in self._said:
            with contextlib.suppress(OSError):
                self._said += self.channel.recv(4096, socket.MSG_DONTWAIT)
        line, end, rest = self._said.partition(b"\n")
        if not end:
            return ""
        self._said = rest
        return line.decode()

    def status(self) -> int | None:
        """Return its exit status as a shell has it; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def signal(self, number: int) -> None:
        """Signal it and everything it has started."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number)

    def spent(self) -> float | None:
        """Return its CPU seconds so far, with those of processes that it has waited for; None if it cannot tell."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> int:
        """Return the memory of all processes of its session, without the file cache, in MB; 0 if it cannot tell."""
        found = 0
        for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rpartition(")")[2].split()[3] != str(self.pid):
                        continue
                with open(f"/proc/{pid}/status") as file:
                    lines = dict(line.split(":", 1) for line in file)
                found += sum(int(lines.get(name, "0").split()[0]) for name in ("RssAnon", "RssShmem"))
            except (OSError, ValueError, IndexError):
                continue
        return -(-found // 1024)

    def forget_peak(self) -> bool:
        """Reset the peak of its memory that the kernel records; False if the kernel does not."""
        try:
            with open(f"/proc/{self.pid}/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            return False
        return True

    def peak_mb(self) -> tuple[int, int]:
        """Return the most memory of this one process since `forget_peak`, with the files that it has mapped and
        without, in MB; zeros if it cannot tell."""
        try:
            with open(f"/proc/{self.pid}/status") as file:
                lines = dict(line.split(":", 1) for line in file)
        except OSError:
            return 0, 0
        peak, mapped = (int(lines.get(name, "0").split()[0]) for name in ("VmHWM", "RssFile"))
        return -(-peak // 1024), -(-(peak - mapped) // 1024)

    def end(self) -> None:
        """Let it exit; kill what is left of it and of the processes that it started."""
        self.channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self.signal(signal.SIGKILL)
        self._process.wait()
