"""This machine as a host."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from yurt.transport.base import Host


class LocalHost(Host):
    """Runs commands on this machine as the current user."""

    name = "this machine"

    def argv(self, command: str) -> list[str]:
        return ["sh", "-c", command]

    def gnu(self) -> bool:
        return _gnu(os.environ.get("PATH", ""))


@cache
def _gnu(path: str) -> bool:
    """Return whether `mv` on this path is GNU's; on Linux by its name, to start no process."""
    import shutil

    program = shutil.which("mv", path=path) or ""
    if sys.platform == "linux":
        return Path(program).resolve().name in ("mv", "gnumv", "coreutils")
    import subprocess

    return b"GNU" in subprocess.run([program or "mv", "--version"], capture_output=True, check=False).stdout
