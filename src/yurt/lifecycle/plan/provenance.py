"""The git commit of a project's folder."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Commit:
    """The commit of a folder. Git starts immediately and runs in the background until `answer` is called."""

    def __init__(self, folder: Path) -> None:
        from yurt.snapshot.git import environment

        command = ["git", "rev-parse", "HEAD", "HEAD:./", "--abbrev-ref", "HEAD"]
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._process = None

    def answer(self) -> tuple[str, str, str]:
        """Return (commit, tree of the folder in it, branch); empty if there is no commit."""
        if self._process is None:
            return "", "", ""
        out, _err = self._process.communicate()
        fields = out.decode(errors="replace").split()
        if self._process.returncode or len(fields) != 3:
            return "", "", ""
        return fields[0], fields[1], fields[2]
