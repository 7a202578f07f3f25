"""The sh scripts of the backends, as sent to a host."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from yurt.model import layout

PACKAGES = Path(__file__).parent


def receiver() -> str:
    """Return the functions that receive and check code."""
    return text("unchanged.sh") + text("receive.sh") + "\n"


@cache
def text(name: str, package: str = "shell") -> str:
    """Return a script of a package, with the file names of a run folder filled in."""
    return layout.fill_in((PACKAGES / package / name).read_text())
