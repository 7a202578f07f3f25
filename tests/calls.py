"""The installed `yurt` as a user calls it; what a test called is kept, so that a failing test can show it."""

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
    """What one call of yurt came to."""

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
    """Run yurt to its end, as a user does with no terminal."""
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
"""The calls of the test that runs, with what they printed."""

LONGEST = 2000
"""Characters of one stream that are kept."""


def note(words: Sequence[str], called: Called) -> Called:
    """Keep one call of the test that runs."""
    said = "".join(f"\n{_cut(text)}" for text in (called.out.strip("\n"), called.err.strip("\n")) if text)
    calls.append(f"$ yurt {shlex.join(words)}  # exit code {called.code}{said}")
    return called


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - LONGEST} characters …]\n{text[-half:]}"
