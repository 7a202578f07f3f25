"""The sh scripts of the backends, as sent to a host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from yurt.model import layout

PACKAGES = Path(__file__).parent


def receiver() -> str:
    """Return the functions that receive and check code."""
    return text("unchanged.sh") + text("receive.sh") + "\n"


@cache
def plain_slurm() -> str:
    """Return the functions of slurm.sh, without its comments, and a call that clears the variables of Slurm."""
    lines = (re.sub(r"(^|\s+)# .*", "", line) for line in text("slurm.sh", "job").split("\n"))
    return "\n".join(line for line in lines if line.strip()) + "\nplain_slurm\n"


@cache
def text(name: str, package: str = "shell") -> str:
    """Return a script of a package, with the file names of a run folder filled in."""
    return layout.fill_in((PACKAGES / package / name).read_text())


def own_arguments(paths: Sequence[str]) -> str:
    """Return the arguments of `own` (own.sh) for yurt's folder on a site and paths below it."""
    storage = paths[0].rpartition("/")[0] or "/"
    return " ".join(shlex.quote(path) for path in [storage, *paths])
