"""Calls the installed `yurt` as a user does, and records the calls for the report of a failed test."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

YURT = str(Path(sys.executable).parent / "yurt")


@dataclass(frozen=True)
class Called:
    """Result of one call of yurt."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Yurt = Callable[..., Called]


def call(
    *arguments: str, environment: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 300
) -> Called:
    """Run yurt without a terminal and wait until it exits."""
    done = subprocess.run(
        [YURT, *arguments],
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    return note(arguments, Called(done.returncode, done.stdout, done.stderr))


calls: list[str] = []
"""The calls of the current test, with their output."""

LONGEST = 2000
"""Maximum number of recorded characters per stream."""


def note(words: Sequence[str], called: Called) -> Called:
    """Record one call of the current test."""
    output = "".join(f"\n{_shortened(text)}" for text in (called.out.strip("\n"), called.err.strip("\n")) if text)
    calls.append(f"$ yurt {shlex.join(words)}  # exit code {called.code}{output}")
    return called


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - LONGEST} characters …]\n{text[-half:]}"
