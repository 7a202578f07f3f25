"""What to do about a run that failed before its command started. Pure."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path


def advice(why: str, run: str) -> str:
    """Return what to do about the reason of a job, which did not start its command; empty if nothing is known."""
    return next((text for match, text in _advice() if re.search(match, why)), "").replace("RUN", run)


@cache
def _advice() -> list[tuple[str, str]]:
    text = (Path(__file__).parent / "not_started.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["advice"].items())
