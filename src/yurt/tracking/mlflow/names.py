"""Names and texts as MLflow accepts them. Pure."""

from __future__ import annotations

import posixpath
import re

from yurt.model.digest import digest

LONGEST_NAME = 250
LONGEST_PARAMETER = 6000
LONGEST_TAG = 5000
"""Characters that every MLflow of version 2 and 3 accepts."""

REFUSED = re.compile(r"[^/\w.\- :]")


def name_of(text: str) -> str:
    """Return a name of a metric, a parameter or a tag that MLflow accepts. Different texts have different names."""
    made = REFUSED.sub("_", text) or "_"
    if posixpath.normpath(made) != made or made.startswith(("/", "..")) or made == ".":
        made = made.replace("/", "_").replace("..", "__").strip(".") or "_"
    if made == text and len(made) <= LONGEST_NAME:
        return made
    return f"{made[: LONGEST_NAME - 7]}_{digest(text).hex()[:6]}"


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
