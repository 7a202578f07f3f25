"""The git commit of a project's folder."""

from __future__ import annotations

from pathlib import Path

from yurt.errors import RefusedError
from yurt.snapshot import git


class Commit:
    """The commit of a folder. Git starts immediately and runs in the background until `answer` is called."""

    def __init__(self, folder: Path) -> None:
        try:
            self._process: git.Running | None = git.start(
                ["rev-parse", "HEAD", "HEAD:./", "--abbrev-ref", "HEAD"], folder=folder
            )
        except (RefusedError, OSError):
            self._process = None

    def answer(self) -> tuple[str, str, str]:
        """Return (commit, tree of the folder in it, branch); empty if there is no commit.

        UserError: git waits for a pipe in place of a file.
        """
        try:
            out = self._process.output() if self._process is not None else b""
        except RefusedError:
            return "", "", ""
        fields = out.decode(errors="replace").split()
        if len(fields) != 3:
            return "", "", ""
        return fields[0], fields[1], fields[2]
