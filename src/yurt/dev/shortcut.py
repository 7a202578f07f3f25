"""The short way of ssh to a dev node: a script that goes where the last connection went, without Python and Slurm.

It goes only if the shared disk says that the dev node is still there. Else, and at first, `yurt dev connect` finds it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from yurt.config import paths
from yurt.dev import keys
from yurt.dev.holder import STATUS

READY = f"""grep -qs '"phase": "ready"' "$0/{STATUS}\""""
"""Whether the holder of a dev node has neither ended nor begun again. Argument: the run folder."""

GO = """\
exec 3<&0
"$@" <&3 3<&- &
trap "kill $!; exit 1" HUP TERM
exec 3<&-
wait $! || exec """
"""Connects; if that fails, yurt says why. ssh sends HUP when the user ends the connection."""


def yurt(name: str, *words: str) -> list[str]:
    """Return the command line of `yurt dev connect`."""
    return [sys.executable, "-P", "-m", "yurt", "dev", "connect", *words, name]


def going(name: str) -> str:
    """Return an sh script that connects with the program in its arguments."""
    return GO + shlex.join(yurt(name, "--lost"))


def file(name: str) -> Path:
    return keys.folder() / f"shortcut-{name}.sh"


def proxy(name: str) -> str:
    """Return the sh script that ssh runs: the short way if there is one, else yurt."""
    return f"[ ! -r {shlex.quote(str(file(name)))} ] || . {shlex.quote(str(file(name)))}; exec {shlex.join(yurt(name))}"


def save(name: str, check: Sequence[str], program: Sequence[str]) -> None:
    """Make a program the short way, for as long as the program `check` succeeds."""
    lines = [
        f"if {shlex.join(check)} < /dev/null > /dev/null 2>&1; then",
        f"set -- {shlex.join(program)}",
        going(name),
        "exit",
        "fi",
    ]
    paths.write_private(file(name), "".join(f"{line}\n" for line in lines).encode())


def forget(name: str) -> None:
    """Let yurt find the dev node the next time."""
    file(name).unlink(missing_ok=True)
