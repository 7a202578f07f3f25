"""What to do about a run that failed before its command started. Pure."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from yurt.model.again import filled
from yurt.model.run import Run


def advice(why: str, run: Run) -> str:
    """Return what to do about the reason of a job, which did not start its command; empty if nothing is known."""
    return filled(next((text for match, text in _advice() if re.search(match, why)), ""), run)


@cache
def _advice() -> list[tuple[str, str]]:
    text = (Path(__file__).parent / "not_started.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["advice"].items())
