"""Answers for mrunner: its spec files and scripts run under yurt as they are."""

from types import SimpleNamespace
from typing import List

settings = SimpleNamespace()
"""Scripts set settings here; none of them means anything."""

notes: List[str] = []
"""What was asked for and left aside, a sentence each; yurt shows them."""


def aside(sentence: str) -> None:
    if sentence not in notes:
        notes.append(sentence)
