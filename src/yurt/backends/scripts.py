"""The sh scripts of the backends, as sent to a host."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from yurt.model import layout

PACKAGES = Path(__file__).parent


@cache
def text(name: str, package: str = "shell") -> str:
    """Return a script of a package, with the file names of a run folder filled in."""
    return layout.fill_in((PACKAGES / package / name).read_text())
