"""The sh scripts of all rooms of backends, as they are sent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from yurt.model import layout

ROOMS = Path(__file__).parent


@cache
def text(name: str, room: str = "shell") -> str:
    """A script of a room, with the file names of a run folder filled in."""
    return layout.fill_in((ROOMS / room / name).read_text())
