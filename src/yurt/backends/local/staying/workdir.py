"""The working directories of calls: each is like the one that job.sh made for the first call. Standard library only."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
import time

from yurt.backends.local.staying import records


class Pattern:
    """The content of a working directory before a call: folders, links and copies of the code."""

    def __init__(self, folder: str, code: str) -> None:
        self.folders: list[tuple[str, int]] = []
        self.links: list[tuple[str, str]] = []
        self.files: list[str] = []
        self._code = code
        self._stamped = os.path.exists(f"{folder}/{records.COPIED}")
        self._read(f"{folder}/{records.WORK}", "")

    def _read(self, work: str, below: str) -> None:
        with os.scandir(f"{work}/{below}") as entries:
            for each in entries:
                path = f"{below}{each.name}"
                if each.is_symlink():
                    self.links.append((path, os.readlink(each.path)))
                elif each.is_dir():
                    self.folders.append((path, stat.S_IMODE(each.stat().st_mode)))
                    self._read(work, f"{path}/")
                else:
                    self.files.append(path)

    @property
    def is_empty(self) -> bool:
        """Whether there is no code."""
        return not (self.folders or self.links or self.files)

    def make(self, folder: str) -> None:
        """Make such a working directory in the folder of a task, unless there is one. Safe to repeat."""
        work, aside = f"{folder}/{records.WORK}", f"{folder}/{records.WORK}.{os.getpid()}"
        if os.path.isdir(work):
            return
        shutil.rmtree(aside, ignore_errors=True)
        os.mkdir(aside, 0o700)
        for path, mode in self.folders:
            os.mkdir(f"{aside}/{path}", mode)
        for path, target in self.links:
            os.symlink(target, f"{aside}/{path}")
        for path in self.files:
            shutil.copy2(f"{self._code}/{path}", f"{aside}/{path}", follow_symlinks=False)
            os.chmod(f"{aside}/{path}", stat.S_IMODE(os.stat(f"{aside}/{path}").st_mode) | stat.S_IWUSR)
        if self._stamped:
            _stamp(f"{folder}/{records.COPIED}")
        os.rename(aside, work)

    def count(self, folder: str) -> tuple[int, int]:
        """Return the disk space, in KB, and the number of the files that a call has written."""
        space = files = 0
        own = set(self.files)
        for name in (records.OUTPUTS, records.CHECKPOINTS, records.WORK):
            root = f"{folder}/{name}"
            for at, _folders, names in os.walk(root):
                with contextlib.suppress(OSError):
                    space += os.lstat(at).st_blocks
                for each in names:
                    with contextlib.suppress(OSError):
                        found = os.lstat(f"{at}/{each}")
                        space += found.st_blocks
                        path = f"{at}/{each}"[len(root) + 1 :]
                        copied = name == records.WORK and path in own and self._same(root, path)
                        files += stat.S_ISREG(found.st_mode) and not copied and not at.endswith("/__pycache__")
        return space // 2, files

    def _same(self, work: str, path: str) -> bool:
        try:
            return filecmp.cmp(f"{work}/{path}", f"{self._code}/{path}", shallow=False)
        except OSError:
            return False

    def tidy(self, folder: str) -> None:
        """Remove the links and the unchanged copies, and then empty folders."""
        work = f"{folder}/{records.WORK}"
        for path, target in self.links:
            with contextlib.suppress(OSError):
                if os.readlink(f"{work}/{path}") == target:
                    os.unlink(f"{work}/{path}")
        for path in self.files:
            if self._same(work, path):
                with contextlib.suppress(OSError):
                    os.unlink(f"{work}/{path}")
        if self._stamped:
            with contextlib.suppress(OSError):
                os.unlink(f"{folder}/{records.COPIED}")
        for at, _folders, _files in os.walk(work, topdown=False) if not self.is_empty else ():
            with contextlib.suppress(OSError):
                os.rmdir(at)


def _stamp(path: str) -> None:
    """Write the stamp that is older than all that the call writes, however coarse the times of this disk are."""
    records.write(path, b"")
    first = os.stat(path).st_mtime_ns
    for _attempt in range(200):
        records.write(f"{path}.now", b"")
        later = os.stat(f"{path}.now").st_mtime_ns > first
        os.unlink(f"{path}.now")
        if later:
            return
        time.sleep(0.001)
