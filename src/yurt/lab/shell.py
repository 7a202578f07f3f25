"""Runs a program of this machine for the lab and turns its failure into one sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from yurt.errors import RefusedError


def run(argv: Sequence[str], *, stdin: str = "", code: str = "lab-boot-failed", timeout: float = 120) -> str:
    """Standard output of a program that must succeed; RefusedError with its last words otherwise."""
    try:
        done = subprocess.run(
            list(argv), input=stdin, capture_output=True, text=True, errors="replace", check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(f"'{argv[0]}' gave no answer in {timeout:.0f} s", code=code) from None
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise RefusedError(f"'{' '.join(argv)[:120]}' failed: {words[0]}", code=code)
    return done.stdout


def succeeds(argv: Sequence[str], *, timeout: float = 60) -> bool:
    """Whether a program ends well; its output is of no interest."""
    try:
        done = subprocess.run(list(argv), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=timeout)
    except (subprocess.TimeoutExpired, OSError):
        return False
    return done.returncode == 0
