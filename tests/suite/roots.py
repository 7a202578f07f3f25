"""Whether the tests can use a lab with another Slurm: its root is built, or can be built soon."""

from __future__ import annotations

from functools import cache

from yurt.errors import YurtError
from yurt.lab import roots, versions

SOON = 600.0
"""Seconds that the tests wait for a new root."""


@cache
def usable(version: str) -> str:
    """Build the root of a version if there is none; return why the tests cannot use it, empty if they can."""
    if version == versions.series(versions.installed()) or roots.built(version):
        return ""
    if not versions.installed():
        return f"Slurm {version}: the packages of the lab are not installed"
    try:
        roots.build(version, timeout=SOON)
    except (YurtError, OSError) as error:
        return f"Slurm {version}: {error}"
    return ""
