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

SCRIPT = Path(__file__).with_name("connect.sh")

READY = f"""grep -qs '"phase": "ready"' "$0/{STATUS}\""""
"""Whether the holder of a dev node has neither ended nor begun again. Argument: the run folder."""

QUIET = "printf 'SSH-2.0-yurt\\r\\n'; exec >&-; cat > /dev/null"
"""Ends a connection that no ssh server has spoken on: ssh, which reads this and then the end, prints nothing."""

FIRST = """\
checks() {
  "$@" < /dev/null > /dev/null 2>&1 &
  checking=$!
  { sleep 3; kill "$checking"; } < /dev/null > /dev/null 2>&1 &
  limit=$!
  wait "$checking" 2> /dev/null
  code=$?
  [ "$code" -lt 128 ] || echo "yurt: waiting for $where to respond" >&2
  kill "$limit" 2> /dev/null
  return "$code"
}
"""
"""Runs a program for at most 3 seconds: a connection may be dead or stopped, and yurt then opens another one."""


def yurt(name: str, *words: str) -> list[str]:
    """Return the command line of `yurt dev connect`."""
    return [sys.executable, "-P", "-m", "yurt", "dev", "connect", *words, name]


def going(name: str) -> str:
    """Return an sh script that connects with a program: see connect.sh. Arguments: WHERE PROGRAM [WORD]..."""
    lost = f"yurt_lost() {{ {shlex.join(yurt(name, '--lost'))}; }}"
    pipe = shlex.quote(f"{keys.folder()}/pipe-{name}-")
    return f'{lost}\nset -- {pipe}$$ "$@"\n{SCRIPT.read_text()}{QUIET}\n'


def file(name: str) -> Path:
    return keys.folder() / f"shortcut-{name}.sh"


def proxy(name: str) -> str:
    """Return the sh script that ssh runs: the short way if there is one, else yurt."""
    return f"[ ! -r {shlex.quote(str(file(name)))} ] || . {shlex.quote(str(file(name)))}; exec {shlex.join(yurt(name))}"


def save(name: str, check: Sequence[str], where: str, program: Sequence[str]) -> None:
    """Make a program the short way, for as long as the program `check` succeeds. `where`: what it connects to."""
    lines = [
        f"where={shlex.quote(where)}",
        f"{FIRST}if checks {shlex.join(check)}; then",
        f'set -- "$where" {shlex.join(program)}',
        going(name),
        "exit",
        "fi",
    ]
    paths.write_private(file(name), "".join(f"{line}\n" for line in lines).encode())


def forget(name: str) -> None:
    """Let yurt find the dev node the next time."""
    file(name).unlink(missing_ok=True)
