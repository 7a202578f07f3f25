"""What the verbs about homes have in common: the configuration, and paths in a home."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import UserError
from yurt.homes import config
from yurt.homes.config import Homes
from yurt.homes.places import Place, all_places
from yurt.model.moments import moment

EXAMPLES = "for example: `--at 14:30`, `--at 2026-11-16` or `--at '2h ago'`"


def homes() -> Homes:
    """Return the homes that are in sync. UserError if there are none."""
    found = config.load()
    if found is None:
        raise UserError(
            "no homes are in sync yet", code="usage", hint="name their contexts: `yurt home sync CONTEXT...`"
        )
    return found


def places(found: Homes, only: Sequence[str] = ()) -> list[Place]:
    """Return all places, or those with these names. UserError if a name is unknown."""
    for name in only:
        if name not in found.names:
            names = ", ".join(found.names)
            raise UserError(f"'{name}' is not one of the places in sync", code="usage", hint=f"the places are: {names}")
    return [each for each in all_places(found) if not only or each.name in only]


def relative(path: str, found: Homes) -> str:
    """Return a path relative to the home, without `.` and `..`.

    An absolute path is one in the folder of this machine, or in the user's home. UserError if it is neither. Bytes that
    are not UTF-8 may be written as `outcomes.shown` writes them.
    """
    inside = os.path.normpath(re.sub(r"\\x([89a-f][0-9a-f])", lambda found: chr(0xDC00 + int(found[1], 16)), path))
    if inside.startswith("/"):
        for root in (Path(found.folder).expanduser().absolute(), Path.home()):
            if Path(inside).is_relative_to(root):
                inside = str(Path(inside).relative_to(root))
                break
    if inside in (".", "..") or inside.startswith(("/", "../")):
        raise UserError(
            f"'{path}' is not a path in the homes", code="usage", hint="a path is relative to the home: `project/a.txt`"
        )
    return inside


def until(at: str | None) -> float | None:
    """Return the time that --at means; None without it. UserError if it means none."""
    try:
        return None if at is None else moment(at, time.time())
    except ValueError:
        raise UserError(f"--at: '{at}' is not a time", code="usage", hint=EXAMPLES) from None
