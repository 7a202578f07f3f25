"""Runs a command or a terminal inside a running run, through the run's job.sh."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from yurt.backends.shell import ownership
from yurt.hosts import Host
from yurt.hosts.guard import guarded
from yurt.hosts.passage import pass_through
from yurt.model import layout
from yurt.model.run import Placement

PATIENCE = 60.0

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

    def _terminal(self, command: str, folder: str) -> int:
        ownership.run(self._host, [folder], ":")
        argv = self._host.terminal(f"sh -c {shlex.quote(command)}")  # the login shell may be any shell
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
