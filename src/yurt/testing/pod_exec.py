"""Commands inside a pod of the backend `Pods`. There is no ssh."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from yurt.backends.answers import Asked
from yurt.errors import RefusedError
from yurt.model.run import Placement
from yurt.model.site_words import NodeName
from yurt.testing.pod import Pod


class PodExec:
    """Runs commands as processes on the disk of a pod."""

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self._pods = pods

    def run(self, placement: Placement, words: Sequence[str], *, terminal: bool) -> int:
        del terminal
        pod = self._pods[placement.folder]
        done = subprocess.run(
            list(words) or ["sh"], cwd=pod.disk / "work", env=pod.environment, stdout=subprocess.PIPE, check=False
        )
        sys.stdout.buffer.write(done.stdout)
        sys.stdout.buffer.flush()
        return done.returncode

    def ask(
        self,
        placement: Placement,
        words: Sequence[str],
        *,
        on_line: Callable[[bytes], None] = lambda _line: None,
        silence: float = 60,
    ) -> Asked:
        if placement.folder not in self._pods:
            raise RefusedError("pods: the run is not running", code="run-not-running")
        done = subprocess.run(list(words), stdin=subprocess.DEVNULL, capture_output=True, timeout=silence, check=False)
        for line in done.stdout.splitlines():
            on_line(line)
        return Asked(done.returncode, done.stdout, done.stderr)

    def relay(self, placement: Placement, command: str) -> list[str]:
        del placement
        return ["sh", "-c", command]

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        del known_hosts, command, prompt, share
        raise RefusedError(f"pods: {node} does not accept ssh", code="site-refused")

    def direct(self, script: str, *arguments: str) -> list[str]:
        del script, arguments
        raise RefusedError("pods: there is no login host", code="site-refused")
