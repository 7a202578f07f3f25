"""Runs uv on this machine, without the settings of an active environment and without installing a Python."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.errors import UserError

REMOVED = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_LOCKED", "UV_FROZEN")
QUIET = {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "LC_ALL": "C.UTF-8"}
"""uv would download the Python of the site, to build packages with it; the one that runs yurt can do that."""


class Done(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def run(arguments: Sequence[str], *, folder: Path, variables: Mapping[str, str]) -> Done:
    """Run uv in a folder and wait for it. UserError if uv is not installed."""
    environment = {name: value for name, value in os.environ.items() if name not in REMOVED}
    done = subprocess.run(
        [find(), *arguments],
        cwd=folder,
        env=environment | QUIET | dict(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def find() -> str:
    """Return the path of uv: the one installed with yurt, else the one on PATH. UserError if there is none."""
    import shutil

    try:
        import uv

        return uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise UserError(
            "uv is not installed on this machine, so packages cannot be resolved",
            code="program-missing",
            hint="run `pip install uv`",
        )
    return found
