"""The backups of workspaces on a host with sh: what there is, and copies of their files to and from this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from yurt.backends import scripts
from yurt.backends.shell import ownership, pull
from yurt.errors import UnreachableError
from yurt.model import layout, workspace
from yurt.model.files import Pick, Progress
from yurt.model.site_words import one_each, whole
from yurt.transport.base import Answer, Host, refusal

PIECE = 16 << 20
"""Bytes that one request uploads."""

SIZE = """\
umask 077
mkdir -p -- "$1" && cd "$1" || exit 1
[ ! -e "$2" ] || { echo there; exit 0; }
if [ -f ".$2.part" ]; then wc -c < ".$2.part"; else echo 0; fi
"""
"""Prints how much of a file was uploaded before; `there` if it is complete. Arguments: FOLDER NAME"""

APPEND = """\
umask 077
cd "$1" || exit 1
touch ".$2.part" || exit 1
[ "$(($(wc -c < ".$2.part")))" -eq "$3" ] || exit 45
cat >> ".$2.part"
"""
"""Adds a piece to a file. Arguments: FOLDER NAME BYTES-SO-FAR"""

PUBLISH = """\
cd "$1" || exit 1
[ ! -e "$2" ] || exit 0
if command -v sha256sum > /dev/null && [ "$(sha256sum < ".$2.part")" != "$3  -" ]; then
  rm -f ".$2.part"
  exit 45
fi
sync ".$2.part" 2> /dev/null
ln ".$2.part" "$2" 2> /dev/null || [ -e "$2" ] || exit 1
rm -f ".$2.part"
"""
"""Gives a complete file its name, unless another file has it. Arguments: FOLDER NAME SHA256"""

INCOMPLETE = 45

HOLDERS = 'for each in "$1"/*/holder; do [ ! -f "$each" ] || head -n 1 "$each"; done'
"""Prints who writes to the backups of workspaces. Argument: the folder above them."""


class ShellWorkspaces:
    """Reads and writes the files of workspaces' backups."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def look(self, folders: Sequence[str]) -> list[workspace.Workspace]:
        answer = ownership.run(self._host, folders, scripts.text("workspaces.sh"), *folders, timeout=120)
        if answer.code:
            raise refusal(self._host.name, "cannot read the backups", answer.errors)
        with self._host.reading():
            return one_each(workspace.read(answer.text), folders)

    def holders(self, base: str) -> list[str]:
        above = layout.workspace(base, "x").rpartition("/")[0]
        answer = ownership.run(self._host, [above], HOLDERS, above)
        if answer.code:
            raise refusal(self._host.name, "cannot read who uses the workspaces", answer.errors)
        return answer.text.splitlines()

    def bring(self, folder: str, names: Sequence[str], target: Path, progress: Progress) -> None:
        has_rsync = self._host.run(pull.HAS_RSYNC).code == 0
        pick = Pick(only=[f"/{name}" for name in names])
        ownership.run(self._host, [folder], ":")
        pull.transfer(self._host, folder, target, pick, progress, has_rsync=has_rsync)

    def send(self, folder: str, name: str, file: Path, moved: Callable[[int], None]) -> None:
        answer = ownership.run(self._host, [folder], SIZE, folder, name, make=True)
        if answer.code:
            raise refusal(self._host.name, f"cannot write to {folder}", answer.errors)
        if answer.text.strip() == "there":
            return
        digest = hashlib.sha256()
        with file.open("rb") as content:
            with self._host.reading():
                done, there = 0, whole(answer.text.strip())
            while piece := content.read(PIECE):
                digest.update(piece)
                new = piece[max(0, there - done) :]
                if new:
                    at = max(there, done)
                    self._check(self._host.run(APPEND, folder, name, str(at), stdin=new, timeout=600), file.name)
                done += len(piece)
                moved(done)
        self._check(self._host.run(PUBLISH, folder, name, digest.hexdigest(), timeout=600), file.name)

    def _check(self, answer: Answer, name: str) -> None:
        """Raise an error if a part of an upload failed."""
        if answer.code == INCOMPLETE:
            raise UnreachableError(
                f"{self._host.name}: the upload of {name} is incomplete",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        if answer.code:
            raise refusal(self._host.name, f"cannot upload {name}", answer.errors)
