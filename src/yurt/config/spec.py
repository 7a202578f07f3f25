"""Reads experiments from a user's Python file (`--spec`), executed in a separate process with a time limit."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from yurt.config.text import check_size
from yurt.errors import UserError
from yurt.model.grid import LIMIT
from yurt.model.params import as_text

SECONDS = 120.0
"""Time limit of a spec file; it may import the whole project."""

PROGRAM = Path(__file__).with_name("spec_program.py")
SHIM = Path(__file__).parents[1] / "node" / "shim"


class SpecError(UserError):
    """A spec file failed. `traceback` is Python's traceback."""

    def __init__(self, message: str, *, hint: str = "", traceback: str = "") -> None:
        super().__init__(message, code="spec-failed", hint=hint)
        self.traceback = traceback


class SpecExperiment(msgspec.Struct, frozen=True):
    """One experiment of a spec file; None or empty for fields that the file does not set."""

    parameters: dict[str, Any]
    name: str | None = None
    project: str | None = None
    script: str | list[str] | None = None
    """The command: a shell command line, or a list of arguments."""
    tags: list[str] = []
    env: dict[str, str | int | float | bool | None] = {}
    exclude: list[str] = []
    python_path: str | None = None
    mrunner: bool = False
    """Made with mrunner's helpers."""


class _Answer(msgspec.Struct, frozen=True):
    experiments: list[SpecExperiment] = []
    notes: list[str] = []
    problem: str | None = None
    line: int | None = None
    experiment: int | None = None
    """The number of the experiment that has the problem."""
    missing: str | None = None
    traceback: str = ""


class Spec(msgspec.Struct, frozen=True):
    """The content of a spec file."""

    experiments: Sequence[SpecExperiment]
    warnings: Sequence[str] = ()


def read(file: Path, *, seconds: float = SECONDS) -> Spec:
    """Execute a spec file; its standard output goes to standard error. SpecError has the problem and its line."""
    if not file.is_file():
        hint = "check the path, which is relative to the working directory"
        raise UserError(f"--spec: file '{file}' not found", code="usage", hint=hint)
    check_size(file, file.stat())
    written, code = _executed(file, seconds)
    if not written:
        raise SpecError(f"Python exited before {file} defined any experiments ({_exit_of(code)})")
    try:
        answer = msgspec.json.decode(written, type=_Answer)
    except msgspec.MsgspecError as error:
        raise SpecError(f"{file} defines an invalid experiment: {_described(error)}") from None
    if answer.problem is not None:
        where = f"{file}:{answer.line}:" if answer.line is not None else str(file)
        if answer.experiment is not None:
            where = f"{file}: experiment {answer.experiment}:"
        hint = f"install {answer.missing} for {sys.executable}, which runs the file" if answer.missing else ""
        raise SpecError(f"{where} {answer.problem}", hint=hint, traceback=answer.traceback)
    if not answer.experiments:
        hint = "return or yield them from `spec()`, or list them in `experiments_list`"
        raise SpecError(f"{file} defines no experiments", hint=hint)
    return Spec(answer.experiments, [f"{file}: {note}" for note in answer.notes])


def _executed(file: Path, seconds: float) -> tuple[bytes, int]:
    """Run the file; return the complete output of spec_program, or nothing, and its exit code.

    Kills every process that the file started. SpecError after `seconds`.
    """
    read_end, write_end = os.pipe()
    try:
        child = subprocess.Popen(
            [
                *(sys.executable, "-P", str(PROGRAM)),
                *(str(file), str(write_end), str(SHIM), str(LIMIT), str(int(seconds) + 5)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[write_end],
            start_new_session=True,
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    deadline = time.monotonic() + seconds
    try:
        written = _all_of(read_end, deadline)
        return written, child.wait(max(0.1, deadline - time.monotonic()))
    except TimeoutError as late:
        raise SpecError(
            f"{file} did not finish within {seconds:g} seconds", hint="check the file for an endless loop"
        ) from late
    except subprocess.TimeoutExpired as late:
        hint = "check that it does not close all file descriptors"
        raise SpecError(f"{file} did not report its experiments and is still running", hint=hint) from late
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _all_of(pipe: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
    raise TimeoutError


def _exit_of(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def _described(error: msgspec.MsgspecError) -> str:
    """Describe an error with its place in words: `$.experiments[0].tags` is the tags of experiment 1."""

    problem, _, path = str(error).partition(" - at ")
    place = re.search(r"experiments\[(\d+)\]\.(\w+)", path)
    return f"{place[2]} of experiment {int(place[1]) + 1}: {problem}" if place else problem


def variables(experiment: SpecExperiment) -> Mapping[str, str]:
    """Return the environment variables of an experiment; python_path becomes PYTHONPATH, as in mrunner."""

    found = {key: as_text(value) for key, value in experiment.env.items() if value is not None}
    return {"PYTHONPATH": experiment.python_path, **found} if experiment.python_path else found
