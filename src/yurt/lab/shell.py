"""Runs programs on this machine for the lab and turns failures into one-line errors."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from yurt.errors import RefusedError


def run(argv: Sequence[str], *, stdin: str = "", code: str = "lab-boot-failed", timeout: float = 120) -> str:
    """Return the standard output of a program. Raises RefusedError with its last line of stderr if it fails."""
    try:
        done = subprocess.run(
            list(argv), input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(f"'{argv[0]}' timed out after {timeout:.0f} s", code=code) from None
    if done.returncode:
        message = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RefusedError(f"'{' '.join(argv)[:120]}' failed: {message[0]}", code=code)
    return done.stdout


def succeeds(argv: Sequence[str], *, timeout: float = 60) -> bool:
    """Return whether a program exits with code 0. Discards its output."""
    try:
        done = subprocess.run(list(argv), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=timeout)
    except (subprocess.TimeoutExpired, OSError):
        return False
    return done.returncode == 0
