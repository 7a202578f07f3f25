"""The Slurm versions of the lab: which Debian release has each of them, and which one this machine has."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from yurt.errors import UserError, one_of


@dataclass(frozen=True)
class Release:
    """A Debian release."""

    suite: str
    options: tuple[str, ...] = ()
    """Options that apt needs for it."""


RELEASES = {
    "22.05": Release("bookworm"),
    "24.11": Release("trixie"),
    # Its index expires after a week, and a mirror can be older than that.
    "26.05": Release("sid", ('Acquire::Check-Valid-Until "false"',)),
}
"""By Slurm version, the Debian release that has it."""


def check(version: str) -> None:
    if version not in RELEASES:
        raise UserError(f"the lab has no Slurm {version}", code="usage", hint=f"use {one_of(list(RELEASES))}")


def installed(root: Path = Path("/")) -> str:
    """Return the version of the Slurm below `root`, such as 22.05.8; empty if none is installed there."""
    argv = ["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${Version}", "slurmctld"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    found = re.match(r"\d+\.\d+(\.\d+)?", done.stdout)
    return found.group() if found is not None and done.returncode == 0 else ""


def series(version: str) -> str:
    """Return the first two numbers of a version: 24.11 of 24.11.5."""
    return ".".join(version.split(".")[:2])
