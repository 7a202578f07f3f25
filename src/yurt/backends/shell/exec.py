"""Runs a command or a terminal inside a running run, through the run's job.sh."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

from yurt.backends.shell import ownership
from yurt.hosts import Host
from yurt.model import layout
from yurt.model.run import Placement

PATIENCE = 60.0

TERMINAL = 'exec "${SHELL:-/bin/sh}"'


class ShellExec:
    """Runs on the host itself; a scheduler's subclass enters the job."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, placement: Placement, words: Sequence[str], *, node: str = "", terminal: bool) -> int:
        instead = shlex.join(words) if words else TERMINAL
        folder, _, task = placement.folder.rpartition(f"/{layout.TASKS}/")
        number = f"YURT_TASK_INDEX={task} " if task.isdigit() else ""
        folder = folder if number else placement.folder
        inside = f"{number}YURT_INSTEAD={shlex.quote(instead)} exec sh {shlex.quote(folder + '/' + layout.JOB)} inside"
        command = self.entered(inside, placement.job, node, terminal=terminal)
        return self._terminal(command, folder) if terminal else self._command(command, folder)

    def entered(self, command: str, job: str, node: str, *, terminal: bool) -> str:
        """Return the command that runs `command` on the node of the job."""
        del job, node, terminal
        return command

    def _terminal(self, command: str, folder: str) -> int:
        ownership.run(self._host, [folder], ":")
        with self._host.session(time.monotonic() + PATIENCE):
            return subprocess.call(self._host.terminal(command))

    def _command(self, command: str, folder: str) -> int:
        """Pass the output on as it comes, without the banners of a login shell."""
        with self._host.stream(ownership.check([folder]) + command) as stream:
            for chunk in stream:
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
            sys.stderr.buffer.write(stream.err)
            return stream.code or 0
