"""What the next sync has to copy from this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from yurt.homesync import ignores
from yurt.hosts import LocalHost

SCRIPT = """\
cd -- "$1" && find . -mindepth 1 @IGNORED@ -prune -o ! -type d -cnewer "$2" -exec printf '%.0s.' {} + < /dev/null
"""


def changed_here(folder: Path, profile: str, since: float) -> int | None:
    """Return how many files of a folder are new or changed since a time; None if it cannot be read.

    `profile` is the text of the profile, whose ignore rules apply.
    """
    script = SCRIPT.replace("@IGNORED@", ignores.read(profile).expression)
    with tempfile.NamedTemporaryFile(prefix="yurt-") as reference:
        os.utime(reference.name, (since, since))
        answer = LocalHost().run(script, str(folder), reference.name)
    return None if answer.code else len(answer.out)
