"""Calls of the installed `yurt`. The calls of a test are recorded and shown if it fails."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests import envelopes, hints

YURT = str(Path(sys.executable).parent / "yurt")


@dataclass(frozen=True)
class Called:
    """The exit code and the output of one call."""

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
    """Run yurt without a terminal and wait for it."""
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
    return note(arguments, Called(done.returncode, done.stdout, done.stderr), environment or {})


calls: list[str] = []
"""The calls of the current test, with their output."""

LONGEST = 2000
"""Maximum number of characters recorded of one stream."""


def note(words: Sequence[str], called: Called, environment: Mapping[str, str]) -> Called:
    """Record one call of the current test; its JSON must match the schemas and its hints must be valid."""
    output = "".join(f"\n{_shortened(text)}" for text in (called.out.strip("\n"), called.err.strip("\n")) if text)
    calls.append(f"$ yurt {shlex.join(words)}  # exit code {called.code}{output}")
    check(words, called, environment)
    return called


def check(words: Sequence[str], called: Called, environment: Mapping[str, str]) -> None:
    own = words[: words.index("--")] if "--" in words else words
    lines = called.out.strip("\n").split("\n") if "--json" in own and called.out.startswith('{"yurt":') else []
    problems = [envelopes.problem(line) for line in lines]
    hinted = [json.loads(line)["error"]["hint"] for line in lines if line.startswith('{"yurt":1,"error"')]
    hinted += re.findall(r"^  hint: (.*)$", called.err, re.MULTILINE)
    contexts = _contexts(environment)
    if contexts is not None and "add" in own[:-1]:  # the hint may name the context that the user is about to add
        contexts.append(own[own.index("add") + 1])
    for hint in hinted:
        problems += hints.wrong(hint, contexts)
    for text in hints.advice(called.out) if "why" in own[:1] else ():
        problems += hints.wrong_commands(text, contexts)
    assert not any(problems), ascii([words, problems])  # words may not be valid text


def _contexts(environment: Mapping[str, str]) -> list[str] | None:
    """Return the contexts of the user who called; None where their file cannot be read."""
    file = Path(environment.get("YURT_CONFIG_HOME", os.environ.get("YURT_CONFIG_HOME", "/none"))) / "contexts.yaml"
    try:
        found = yaml.safe_load(file.read_text()) if file.is_file() else {}
        return ["local", *((found or {}).get("contexts") or {})]
    except (OSError, ValueError, AttributeError, RecursionError, yaml.YAMLError):
        return None


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}\n[… {len(text) - LONGEST} characters …]\n{text[-half:]}"
