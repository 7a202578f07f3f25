"""The remote shell of rsync: how an rsync process reaches its host.

Usually it is the ssh program alone, so that all bytes pass between rsync and ssh without a program between them. If the
login of the host prints something before each command, or this machine cannot count the bytes of a process, clean.py
copies the bytes.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from yurt.transport import clean
from yurt.transport.ssh import SshHost

RESPONDED = f"yurt-responded-{os.urandom(8).hex()}"
"""What a host prints on standard error first."""

MARK = f"yurt-begin-{os.urandom(8).hex()}"
"""What a host prints on standard error when it starts rsync."""

NOISY = "is your shell clean?"
"""What rsync prints if the output of a host does not begin with its protocol."""

NOTHING = "(0 bytes received so far)"
"""What rsync prints if the host closed the connection before it sent anything."""

OPTIONS = ["-e", "sh -c 'eval \"$YURT_SHELL\"' yurt"]
"""Options of rsync. Words of another shell in -e would need quotes of rsync's own kind."""

EXITED = f"yurt-exited-{os.urandom(8).hex()}"
"""What the remote shell prints on standard error before the exit code of ssh. rsync may exit before it knows that."""

DIRECT = f'shift; unset YURT_SHELL; {{ssh}} "$*"; code=$?; echo "{EXITED} $code" >&2; exit "$code"'
"""Runs ssh. The word before the command, a name for the host, is dropped."""


def server(script: str = "", *arguments: str) -> str:
    """Return the option that starts rsync on a host after a script of one line, with the mark before its output."""
    text = f'echo {RESPONDED} >&2; {script}echo {MARK} >&2; exec rsync "$@"'
    return "--rsync-path=" + shlex.join(["sh", "-c", text, "yurt", *arguments])


def is_direct(host: SshHost) -> bool:
    """Whether ssh alone is the remote shell of a host."""
    return traffic(os.getpid()) is not None and not host.is_noisy()


def variables(host: SshHost, status: int, silence: int, *, direct: bool) -> dict[str, str]:
    """Return the environment variables of the remote shell: ssh alone if `direct`, else clean.py.

    clean.py writes signs to the descriptor `status`.
    """
    *ssh, _command = host.argv("")
    if direct:
        return {"YURT_SHELL": DIRECT.format(ssh=shlex.join(ssh))}
    program = shlex.join([sys.executable, "-I", "-S", clean.__file__])
    words = [str(status), f"yurt-output-{os.urandom(8).hex()}", str(silence), *ssh]
    return {"YURT_SHELL": f'unset YURT_SHELL; exec {program} "$@"', "YURT_CLEAN": clean.SEPARATOR.join(words)}


def traffic(pid: int) -> int | None:
    """Return how many bytes a process and its children have read and written; None if that is unknown."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ValueError):
        return None
    own = sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))
    return own + sum(traffic(int(each)) or 0 for each in children)
