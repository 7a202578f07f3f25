"""Calls git so that nothing of the user's is read by accident or written at all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import RefusedError

QUIET = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


def call(arguments: Sequence[str], *, folder: Path, stdin: bytes = b"", own: Path | None = None) -> bytes:
    """Standard output of git in a folder; with `own`, in a git folder of yurt's with that work tree.

    Raises RefusedError with git's own words.
    """
    place = [f"--git-dir={own}", f"--work-tree={folder}"] if own is not None else []
    argv = ["git", *QUIET, *place, *arguments]
    try:
        done = subprocess.run(argv, cwd=folder, input=stdin, env=environment(), capture_output=True, check=False)
    except FileNotFoundError:
        raise RefusedError("git is not on this machine", code="program-missing", hint="install git") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise RefusedError(f"git {arguments[0]} failed in {folder}: {words[0]}", code="git-failed")
    return done.stdout


def environment() -> dict[str, str]:
    """The user's environment without what would point git elsewhere; no lock of the user's is taken."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def in_repository(folder: Path) -> bool:
    """Whether a folder is inside somebody's git work tree."""
    argv = ["git", *QUIET, "rev-parse", "--is-inside-work-tree"]
    done = subprocess.run(argv, cwd=folder, env=environment(), capture_output=True, check=False)
    return done.stdout.strip() == b"true"


def succeeds(arguments: Sequence[str], *, own: Path) -> bool:
    """Whether git in a git folder of yurt's says yes."""
    argv = ["git", *QUIET, f"--git-dir={own}", *arguments]
    return subprocess.run(argv, env=environment(), capture_output=True, check=False).returncode == 0
