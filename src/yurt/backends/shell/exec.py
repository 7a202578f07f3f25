"""Runs a command or a terminal inside a running run, through the run's job.sh."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from yurt.backends.answers import Asked
from yurt.backends.shell import ownership
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model import layout
from yurt.model.run import Placement
from yurt.model.site_words import NodeName, whole
from yurt.transport.base import Host
from yurt.transport.guard import guarded
from yurt.transport.passage import pass_through
from yurt.transport.ssh_errors import RETRY

PATIENCE = 60.0

LARGEST = 16 << 20
"""Bytes that a command of yurt may print in a job."""

NO_JOB = 143
"""Exit code of a script if the job has ended."""

TERMINAL = 'exec "${SHELL:-/bin/sh}"'
"""Opens a terminal; job.sh recognises it by its end."""


class ShellExec:
    """Runs on the host itself; a scheduler's subclass enters the job."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, placement: Placement, words: Sequence[str], *, terminal: bool) -> int:
        instead = shlex.join(words) if words else TERMINAL
        folder, _, task = placement.folder.rpartition(f"/{layout.TASKS}/")
        number = f"YURT_TASK_INDEX={task} " if task.isdigit() else ""
        folder = folder if number else placement.folder
        inside = f"{number}YURT_INSTEAD={shlex.quote(instead)} exec sh {shlex.quote(folder + '/' + layout.JOB)} inside"
        command = self.entered(inside, placement.job, folder, terminal=terminal)
        return self._terminal(command, folder) if terminal else self._command(command, folder)

    def entered(self, command: str, job: str, folder: str, *, terminal: bool) -> str:
        """Return the sh command that runs `command` on the first node of the job; `folder` is shared with that node."""
        del job, folder, terminal
        return command

    def ask(
        self,
        placement: Placement,
        words: Sequence[str],
        *,
        on_line: Callable[[bytes], None] = lambda _line: None,
        silence: float = 60,
    ) -> Asked:
        mark = f"yurt-code-{os.urandom(8).hex()} ".encode()
        command = f"({shlex.join(words)}); printf '\\n%s %d\\n' {mark.decode().strip()} $?"
        rest, out, size = b"", list[bytes](), 0
        with ownership.stream(
            self._host,
            [placement.folder],
            self.asked(command, placement.job),
            silence=silence,
            part=f"job {placement.job}",
        ) as stream:
            for chunk in stream:
                size += len(chunk)
                if size > LARGEST:
                    raise RefusedError(
                        f"{self._host.name}: a command in job {placement.job} printed more than {LARGEST >> 20} MB",
                        code="site-invalid",
                    )
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    out.append(line)
                    if not line.startswith(mark):
                        on_line(line)
            returned, err = stream.code, stream.err
        if not out or not out[-1].startswith(mark):
            raise self._not_entered(placement.job, returned, err)
        with self._host.reading():
            code = whole(out.pop().removeprefix(mark).decode(errors="replace"))
        return Asked(code, b"\n".join(out), err)

    def _not_entered(self, job: str, returned: int | None, err: bytes) -> YurtError:
        if returned == NO_JOB:
            return RefusedError(f"{self._host.name}: job {job} is not running", code="run-not-running")
        lines = err.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {returned}"
        return UnreachableError(
            f"{self._host.name}: cannot run a command in job {job}: {reason}", code="connection-lost", hint=RETRY
        )

    def asked(self, command: str, job: str) -> str:
        """Return the script that runs `command` on the first node of the job and exits with its code."""
        del job
        return command

    def relay(self, placement: Placement, command: str) -> list[str]:
        with self._host.session(time.monotonic() + PATIENCE):
            return self._host.relay(f"sh -c {shlex.quote(self._host.prelude + self.relayed(command, placement.job))}")

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        with self._host.session(time.monotonic() + PATIENCE):
            return self._host.hop(node, known_hosts, command, prompt=prompt, share=share)

    def direct(self, script: str, *arguments: str) -> list[str]:
        return self._host.argv(shlex.join(["sh", "-c", script, *arguments]))

    def relayed(self, command: str, job: str) -> str:
        """Return the sh command that runs `command` on the first node of the job, with its standard streams."""
        del job
        return f"exec {command}"

    def _terminal(self, command: str, folder: str) -> int:
        ownership.run(self._host, [folder], ":")
        text = shlex.quote(self._host.prelude + command)
        argv = self._host.terminal(f"sh -c {text}")  # the login shell may be any shell
        with self._host.session(time.monotonic() + PATIENCE), _terminal_kept():
            process = subprocess.Popen(argv)
            try:
                with guarded(process.pid):
                    code = process.wait()
            except BaseException:
                process.kill()
                process.wait()
                raise
        return code if code >= 0 else 255  # killed: as if ssh had lost its connection

    def _command(self, command: str, folder: str) -> int:
        return pass_through(self._host, ownership.check([folder]) + command)


@contextlib.contextmanager
def _terminal_kept() -> Iterator[None]:
    """Restore the modes of the terminal at the end, even if its program was killed. Ctrl-C is for that program."""
    import termios

    before = None
    with contextlib.suppress(termios.error, OSError, ValueError):
        before = termios.tcgetattr(sys.stdin.fileno())
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda _number, _frame: None) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        if before is not None:
            with contextlib.suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
