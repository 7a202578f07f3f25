"""The sh scripts of this room, as text."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def text(name: str) -> str:
    """One of the scripts beside this file."""
    return (Path(__file__).parent / name).read_text()
