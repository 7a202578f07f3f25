"""Runs git without reading the user's git environment by accident, and without writing to the user's repository."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import RefusedError, UserError

QUIET = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")

PATIENCE = 3.0
"""Seconds after which to look for what git waits for."""

SEARCH_SECONDS = 5.0
"""The longest search for it."""

_running: set[subprocess.Popen[bytes]] = set()


class Running:
    """A running git process; several may run in parallel."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        own: Path | None,
        index: Path | None = None,
        also: Path | None = None,
    ) -> None:
        self._what, self._folder = arguments[0], folder
        place = [f"--git-dir={own}", f"--work-tree={folder}"] if own is not None else []
        inherited = environment() if index is None else environment() | {"GIT_INDEX_FILE": str(index)}
        if also is not None:
            quoted = str(also / "objects").replace("\\", "\\\\").replace('"', '\\"')
            inherited["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{quoted}"'
        try:
            self._process = subprocess.Popen(
                ["git", *QUIET, *place, *arguments],
                cwd=folder,
                env=inherited,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            raise RefusedError(
                "git is not installed on this machine", code="program-missing", hint="install `git`"
            ) from None
        _running.add(self._process)

    def output(self, stdin: bytes = b"") -> bytes:
        """Wait for git to finish and return its output. RefusedError with git's error message if it fails."""
        out, err = self._communicate(stdin)
        if self._process.returncode:
            lines = err.decode(errors="replace").strip().splitlines() or [f"exit code {self._process.returncode}"]
            raise RefusedError(f"git {self._what} failed in {self._folder}: {lines[0]}", code="git-failed")
        return out

    def succeeds(self) -> bool:
        self._communicate()
        return self._process.returncode == 0

    def _communicate(self, stdin: bytes = b"") -> tuple[bytes, bytes]:
        """Wait for git. UserError if it waits for a pipe in place of a file."""
        try:
            return self._wait(stdin)
        finally:
            _running.discard(self._process)

    def _wait(self, stdin: bytes) -> tuple[bytes, bytes]:
        try:
            return self._process.communicate(stdin, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pipe = _endless_file(self._folder)
        if pipe is None:
            return self._process.communicate()
        for each in list(_running):
            each.kill()
        self._process.communicate()
        kind = "pipe" if (self._folder / pipe).is_fifo() else "device"
        raise UserError(
            f"'{pipe}' is a {kind}, not a file, and git waits for its content",
            code="usage",
            hint="remove it, or replace it with a file",
        )


def start(arguments: Sequence[str], *, folder: Path, own: Path | None = None, index: Path | None = None) -> Running:
    """Start git in a folder; with `own`, on that git folder of yurt with `folder` as its work tree."""
    return Running(arguments, folder, own, index)


def call(
    arguments: Sequence[str], *, folder: Path, stdin: bytes = b"", own: Path | None = None, also: Path | None = None
) -> bytes:
    """Run git as `start` does, and return its standard output.

    `also` is another git folder of yurt, whose objects are available too.
    """
    return Running(arguments, folder, own, also=also).output(stdin)


def in_repository(folder: Path) -> bool:
    """Return whether git considers a folder to be inside a work tree."""
    try:
        return call(["rev-parse", "--is-inside-work-tree"], folder=folder).strip() == b"true"
    except RefusedError:
        return False


READ = {".git", ".gitignore", ".gitattributes", ".gitmodules", ".yurtignore"}
"""Files that git reads wherever they are, beside all those in a folder `.git`."""


def _endless_file(folder: Path) -> Path | None:
    """Return a pipe or a device in a project that is in the place of a file that git reads."""
    deadline = time.monotonic() + SEARCH_SECONDS
    for inner, _folders, names in os.walk(folder):
        own = ".git" in Path(inner).relative_to(folder).parts
        for name in names if own else READ.intersection(names):
            path = Path(inner, name)
            if path.is_fifo() or path.is_char_device():
                return path.relative_to(folder)
        if time.monotonic() > deadline:
            break
    return None


def environment() -> dict[str, str]:
    """Return the environment without GIT_ variables, with optional locks disabled.

    Git contacts no other repository: one whose configuration names a promisor would make it run a program of that
    configuration when an object is missing. Git before 2.44 does not know GIT_NO_LAZY_FETCH.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    alone = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    return kept | alone | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
