"""A replacement for mrunner: its spec files and scripts run under yurt unchanged."""

from types import SimpleNamespace
from typing import List

settings = SimpleNamespace()
"""Scripts set attributes here; yurt ignores them."""

notes: List[str] = []
"""Warnings about ignored settings, one sentence each; yurt shows them."""


def warn(sentence: str) -> None:
    if sentence not in notes:
        notes.append(sentence)
