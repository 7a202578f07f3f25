"""Where in git a project's folder stands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Commit:
    """The commit a folder is at: asked for at once, answered when it is wanted, other work meanwhile."""

    def __init__(self, folder: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        words = ["git", "rev-parse", "HEAD", "HEAD:./", "--abbrev-ref", "HEAD"]
        try:
            self._asked: subprocess.Popen[bytes] | None = subprocess.Popen(
                words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            self._asked = None

    def answer(self) -> tuple[str, str, str]:
        """(commit, tree of the folder in it, branch); empty where there is no commit."""
        if self._asked is None:
            return "", "", ""
        out, _err = self._asked.communicate()
        words = out.decode(errors="replace").split()
        if self._asked.returncode or len(words) != 3:
            return "", "", ""
        return words[0], words[1], words[2]
