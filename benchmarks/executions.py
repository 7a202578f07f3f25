"""Counts the programs that a command executes, in all its processes, also those that outlive it. Needs strace."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

EXECUTED = re.compile(r'^execve\("([^"]*)", .* = 0$', re.MULTILINE)
TRACE = ["strace", "-ff", "-qq", "-s", "120", "-e", "trace=execve", "-e", "signal=none"]


def available() -> bool:
    """Return whether processes can be traced here: strace may be missing, and containers may forbid it."""
    try:
        return len(executions(["true"])) == 1
    except (OSError, subprocess.CalledProcessError):
        return False


def executions(
    argv: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None, *, code: int = 0
) -> list[str]:
    """Return the paths of the programs, those of one process after the other. CalledProcessError: not this exit code.

    One file for each process: in a common one, calls of several processes interrupt each other. strace ends after the
    last of them.
    """
    with tempfile.TemporaryDirectory() as traces:
        done = subprocess.run(
            [*TRACE, "-o", f"{traces}/of", *argv],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode != code:
            raise subprocess.CalledProcessError(done.returncode, list(argv), done.stdout, done.stderr)
        files = sorted(Path(traces).iterdir(), key=lambda file: int(file.suffix[1:]))
        return [program for file in files for program in EXECUTED.findall(file.read_text(errors="replace"))]
