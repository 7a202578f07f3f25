"""The records of a task that runs a call: the same files as job.sh writes, in the same order. Standard library only.

A text is written once: under a name of its own first, then linked, and what is read back counts; see gate.sh.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

from yurt.backends.local import gate, process

# The same as in yurt.model.layout, which costs too much to import here; a test compares them.
WINNER, START, STOPPED, CHILD, EXIT, CANCEL = "winner", "gen.1", "stopped.1", "child.1", "exit.json", "cancel"
OUT_LOG, ERR_LOG, PARAMS, SET, SETS, OFFSETS = "out.log", "err.log", "params.json", "set", "sets", "offsets"
OUTPUTS, CHECKPOINTS, WORK, COPIED, USAGE, WHY = "outputs", "checkpoints", "work", "copied", "usage", "why"
TASKS, NO_LINKS = "tasks", "no-links"

PATIENCE = 30
"""Seconds for which a write is repeated: the disk may be full for a moment."""

END_PATIENCE = 600
"""Seconds for which the record of the end is repeated: without it, the end is not known."""

CANCELLED = "cancelled"


class GivenUpError(Exception):
    """A record could not be written in time: this process ends, as job.sh does, and leaves the task as it is."""


def insist(write: Callable[[], object], patience: int = PATIENCE) -> None:
    """Repeat a write that fails. GivenUpError after that many seconds."""
    for attempt in range(patience):
        try:
            write()
            return
        except OSError as error:
            if attempt == patience - 1:
                raise GivenUpError(f"{error}") from error
            time.sleep(1)


def write(path: str, content: bytes, *, sync: bool = False) -> None:
    with open(path, "wb", opener=gate.private) as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def put(aside: str, path: str) -> str:
    """Link a complete file to a name that is written once, and return what is there then. OSError: nothing is."""
    error: OSError | None = None
    try:
        os.link(aside, path)
    except OSError as found:
        error = found
    text = gate.read_written(path)
    if not text:
        raise error or FileNotFoundError(path)
    return text


def write_once(path: str, text: str, own: str, patience: int = PATIENCE) -> str:
    """Write a text under a name that is written once, and return what is there then. GivenUpError: nothing is."""
    found = gate.write_once(path, text, own, patience=patience)
    if not found:
        raise GivenUpError(path)
    return found


class Common:
    """The texts that all tasks of a runner have in common. They are files with one link for each task that runs."""

    def __init__(self, sweep: str, nonce: str, own: str) -> None:
        pid = os.getpid()
        self.winner = f"{nonce}.{pid}"
        self.start = f"{nonce}.{pid}.0.{os.uname().nodename}.{pid}.{process.born(pid) or 0}.{process.boot() or 0}"
        self._files = {name: f"{sweep}/{name}.{own}" for name in (WINNER, START)}

    def put(self, name: str, text: str, folder: str) -> str:
        """Put the text of a name into the folder of a task, unless another is there. Return the one that is there."""
        found, source = "", self._files[name]

        def attempt() -> None:
            nonlocal found
            try:
                found = put(source, f"{folder}/{name}")
            except OSError:  # there is no such file yet, or it has too many links
                aside = f"{source}.new"
                write(aside, f"{text}\n".encode(), sync=True)
                os.replace(aside, source)
                found = put(source, f"{folder}/{name}")

        insist(attempt)
        return found

    def remove(self) -> None:
        for each in self._files.values():
            with contextlib.suppress(OSError):
                os.unlink(each)


def parameters(sweep: str, number: int) -> tuple[bytes, dict[str, str]]:
    """Return the parameters of a task as JSON, and its variables, from the file with those of all tasks."""
    with open(f"{sweep}/{OFFSETS}", "rb") as file:
        file.seek(number * 22)
        at, size = map(int, file.read(21).split())
    with open(f"{sweep}/{SETS}", "rb") as file:
        file.seek(at)
        text = file.read(size)
    head, _, rest = text.partition(b"\n")
    return head[1:] + b"\n", dict(_variables(rest))


def _variables(text: bytes) -> list[tuple[str, str]]:
    """Parse lines `export NAME='VALUE'`, with ' in a value written as '"'"'. A value may contain newlines."""
    found = []
    while text.startswith(b"export "):
        name, _, text = text[7:].partition(b"=")
        value = b""
        while text[:1] in (b"'", b'"'):
            piece, _, text = text[1:].partition(text[:1])
            value += piece
        found.append((os.fsdecode(name), os.fsdecode(value)))
        text = text[1:]
    return found


def make_folder(folder: str, params: bytes) -> None:
    """Make the folder of a task, with its parameters and its logs."""
    os.makedirs(folder, exist_ok=True)
    write(f"{folder}/{PARAMS}", params)
    for name in (OUT_LOG, ERR_LOG):
        os.close(gate.private(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND))


def write_end(folder: str, fields: dict[str, Any], own: str) -> None:
    text = json.dumps(fields, separators=(",", ":"))
    write_once(f"{folder}/{EXIT}", text, own, END_PATIENCE)


def fold(folder: str) -> None:
    """Remove what nobody needs after the end of a task."""
    for name in (WINNER, START, STOPPED, CHILD, SET, PARAMS, USAGE, WHY):
        with contextlib.suppress(OSError):
            os.unlink(f"{folder}/{name}")
    for name in (OUT_LOG, ERR_LOG):
        with contextlib.suppress(OSError):
            if not os.stat(f"{folder}/{name}").st_size:
                os.unlink(f"{folder}/{name}")


class Spare:
    """Empty folders of ended tasks, which the next task gets: on some disks it takes long to remove one."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def keep(self, folder: str, name: str) -> None:
        """Keep a folder of an ended task for the next one if it is empty."""
        path = f"{folder}/{name}"
        try:
            if os.listdir(path):
                return
        except OSError:
            return
        self.drop(name)
        self._folders[name] = path

    def give(self, folder: str, name: str) -> None:
        """Make an empty folder in that of a task, unless there is one."""
        spare = self._folders.pop(name, "")
        with contextlib.suppress(OSError):
            if spare and not os.listdir(spare):
                os.rename(spare, f"{folder}/{name}")
                return
        os.makedirs(f"{folder}/{name}", mode=0o700, exist_ok=True)

    def drop(self, *names: str) -> None:
        for name in names or list(self._folders):
            with contextlib.suppress(OSError, KeyError):
                os.rmdir(self._folders.pop(name))
