"""The files of this machine that changed since a time, without those that the profile ignores."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from yurt.homes import ignores
from yurt.transport.base import Answer
from yurt.transport.local import LocalHost

SCRIPT = """\
cd -- "$1" && find . -mindepth 1 @IGNORED@ -prune -o ! -type d @TEST@ "$2" @ACTION@ < /dev/null
"""


def changed_here(folder: Path, profile: str, since: float) -> int | None:
    """Return how many files of a folder are new or changed since a time; None if it cannot be read.

    `profile` is the text of the profile, whose ignore rules apply.
    """
    answer = _find(folder, profile, since, "-cnewer", "-exec printf '%.0s.' {} +")
    return None if answer.code else len(answer.out)


def edited_here(folder: Path, profile: str, since: float) -> list[str]:
    """Return the files of a folder whose contents were edited since a time, relative to it."""
    answer = _find(folder, profile, since, "-newer", "-print0")
    return [os.fsdecode(path).removeprefix("./") for path in answer.out.split(b"\0")[:-1]]


def _find(folder: Path, profile: str, since: float, test: str, action: str) -> Answer:
    script = SCRIPT.replace("@IGNORED@", ignores.read(profile).expression).replace("@TEST@", test)
    with tempfile.NamedTemporaryFile(prefix="yurt-") as reference:
        os.utime(reference.name, (since, since))
        return LocalHost().run(script.replace("@ACTION@", action), str(folder), reference.name)
