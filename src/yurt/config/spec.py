"""Experiments from a Python file of the user's (`--spec`), which runs in a process of its own, for a limited time."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.errors import UserError
from yurt.model.grid import LIMIT

SECONDS = 120.0
"""What a spec file may take; it may import the whole project."""

PROGRAM = Path(__file__).with_name("spec_program.py")
SHIM = Path(__file__).parents[1] / "node" / "shim"


class SpecError(UserError):
    """A spec file failed. `traceback` is Python's own account of it."""

    def __init__(self, message: str, *, hint: str = "", traceback: str = "") -> None:
        super().__init__(message, code="spec-failed", hint=hint)
        self.traceback = traceback


class SpecExperiment(msgspec.Struct, frozen=True):
    """One experiment of a spec file; nothing stands for what the file does not say."""

    parameters: dict[str, Any]
    name: str | None = None
    project: str | None = None
    script: str | list[str] | None = None
    """The command: a line for a shell, or its words."""
    tags: list[str] = []
    env: dict[str, str | int | float | bool | None] = {}
    exclude: list[str] = []
    python_path: str | None = None
    mrunner: bool = False
    """Made with mrunner's helpers: its script takes no parameters as arguments, it asks for them."""


class _Answer(msgspec.Struct, frozen=True):
    experiments: list[SpecExperiment] = []
    notes: list[str] = []
    problem: str | None = None
    line: int | None = None
    missing: str | None = None
    traceback: str = ""


class Spec(msgspec.Struct, frozen=True):
    """What a spec file gives."""

    experiments: Sequence[SpecExperiment]
    warnings: Sequence[str] = ()


def read(file: Path, *, seconds: float = SECONDS) -> Spec:
    """Execute a spec file. What it prints goes to standard error. SpecError says what is wrong, and in which line."""
    if not file.is_file():
        raise UserError(f"there is no file '{file}'", code="usage", hint="--spec experiments.py")
    written, code = _executed(file, seconds)
    if not written:
        raise SpecError(f"{file} ended Python ({_ending(code)}) before it gave experiments")
    try:
        answer = msgspec.json.decode(written, type=_Answer)
    except msgspec.MsgspecError as error:
        raise SpecError(f"{file} gives an experiment that is none: {_worded(error)}") from None
    if answer.problem is not None:
        where = f"{file}:{answer.line}:" if answer.line is not None else str(file)
        hint = f"{sys.executable} executes it; install {answer.missing} there" if answer.missing else ""
        raise SpecError(f"{where} {answer.problem}", hint=hint, traceback=answer.traceback)
    if not answer.experiments:
        raise SpecError(
            f"{file} gives no experiments", hint="its spec() returns or yields them, or experiments_list has"
        )
    return Spec(answer.experiments, [f"{file}: {note}" for note in answer.notes])


def _executed(file: Path, seconds: float) -> tuple[bytes, int]:
    """What the program wrote, all of it or nothing, and its exit code. Nothing it started is left."""
    ours, its = os.pipe()
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), str(file), str(its), str(SHIM), str(LIMIT), str(int(seconds) + 5)],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[its],
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    until = time.monotonic() + seconds
    try:
        written = _all_of(ours, until)
        return written, child.wait(max(0.1, until - time.monotonic()))
    except TimeoutError as late:
        raise SpecError(
            f"{file} took longer than {seconds:g} seconds", hint="it may have a loop without an end"
        ) from late
    except subprocess.TimeoutExpired as late:
        raise SpecError(f"{file} gave no experiments and does not end", hint="it may have closed all files") from late
    finally:
        os.close(ours)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _all_of(pipe: int, until: float) -> bytes:
    parts: list[bytes] = []
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    raise TimeoutError


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"


def _worded(error: msgspec.MsgspecError) -> str:
    """Without the path's own marks: `$.experiments[0].tags` is the tags of experiment 1."""
    import re

    said, _, path = str(error).partition(" - at ")
    place = re.search(r"experiments\[(\d+)\]\.(\w+)", path)
    return f"{place[2]} of experiment {int(place[1]) + 1}: {said}" if place else said


def variables(experiment: SpecExperiment) -> Mapping[str, str]:
    """The environment variables an experiment asks for; python_path is PYTHONPATH, as mrunner had it."""
    from yurt.model.params import as_text

    found = {key: as_text(value) for key, value in experiment.env.items() if value is not None}
    return {"PYTHONPATH": experiment.python_path, **found} if experiment.python_path else found
