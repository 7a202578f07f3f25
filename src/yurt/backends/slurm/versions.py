"""The Slurm versions that yurt supports, and those that its tests run on. Pure.

What differs between them is in wordings.py and docs/reference/slurm.md. A word that no table knows is shown as Slurm
prints it.
"""

from __future__ import annotations

import re

OLDEST = (20, 11)
"""Older ones lack options of sbatch and squeue that yurt uses."""

TESTED = ((22, 5), (24, 11), (26, 5))
"""The versions on which the tests run, the newest last."""


def caution(text: str) -> str:
    """Return what a user must know about the version of a site, such as `slurm 19.05.8`; empty if there is nothing."""
    found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", text)
    if found is None:
        return ""
    version = int(found[1]), int(found[2])
    if version < OLDEST:
        return f"Slurm {found[0]} is older than {dotted(OLDEST)}, the oldest that yurt supports; some options may fail"
    if version > TESTED[-1]:
        return (
            f"Slurm {found[0]} is newer than {dotted(TESTED[-1])}, the newest that yurt is tested with; it may print "
            "states and reasons that yurt shows as unknown"
        )
    return ""


def dotted(version: tuple[int, int]) -> str:
    """Return a version as Slurm writes it: 22.05."""
    return f"{version[0]}.{version[1]:02}"
