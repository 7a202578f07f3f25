"""Calls git so that nothing of the user's is read by accident or written at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import RefusedError

QUIET = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


class Running:
    """A git that was started; several may run at once."""

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
        environment = _environment() if index is None else _environment() | {"GIT_INDEX_FILE": str(index)}
        if also is not None:
            quoted = str(also / "objects").replace("\\", "\\\\").replace('"', '\\"')
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{quoted}"'
        try:
            self._process = subprocess.Popen(
                ["git", *QUIET, *place, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            raise RefusedError("git is not on this machine", code="program-missing", hint="install git") from None

    def output(self, stdin: bytes = b"") -> bytes:
        """Wait for its end. Raises RefusedError with git's own words."""
        out, err = self._process.communicate(stdin)
        if self._process.returncode:
            words = err.decode(errors="replace").strip().splitlines() or [f"exit code {self._process.returncode}"]
            raise RefusedError(f"git {self._what} failed in {self._folder}: {words[0]}", code="git-failed")
        return out

    def succeeds(self) -> bool:
        self._process.communicate()
        return self._process.returncode == 0


def start(arguments: Sequence[str], *, folder: Path, own: Path | None = None, index: Path | None = None) -> Running:
    """Start git in a folder; with `own`, in a git folder of yurt's with that work tree."""
    return Running(arguments, folder, own, index)


def call(
    arguments: Sequence[str], *, folder: Path, stdin: bytes = b"", own: Path | None = None, also: Path | None = None
) -> bytes:
    """Standard output of git in a folder, or in a git folder of yurt's with that work tree.

    `also` is another git folder of yurt's, whose objects are seen as well.
    """
    return Running(arguments, folder, own, also=also).output(stdin)


def in_repository(folder: Path) -> bool:
    """Whether a folder is inside somebody's git work tree, as git itself sees it."""
    try:
        return call(["rev-parse", "--is-inside-work-tree"], folder=folder).strip() == b"true"
    except RefusedError:
        return False


def _environment() -> dict[str, str]:
    """The user's environment without what would point git elsewhere; no lock of the user's is taken."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
