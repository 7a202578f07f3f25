"""The working directories of calls: each is like the one that job.sh made for the first call. Standard library only."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat

from yurt.backends.local import work_folder
from yurt.backends.local.staying import records

State = dict[str, tuple[int, int]]
"""The inode of each entry of a working directory, and the time of its last change."""


class Pattern:
    """The content of a working directory before a call: folders, links and copies of the code.

    A call that changes nothing leaves its working directory to the next one.
    """

    def __init__(self, folder: str, code: str) -> None:
        self._folders: list[tuple[str, int]] = []
        self._links: list[tuple[str, str]] = []
        self._files: list[str] = []
        self._code = code
        self._stamped = os.path.exists(f"{folder}/{records.COPIED}")
        self._read(f"{folder}/{records.WORK}", "")
        self._state: State = {}
        self._spare = ""

    def _read(self, work: str, below: str) -> None:
        with os.scandir(f"{work}/{below}") as entries:
            for each in entries:
                path = f"{below}{each.name}"
                if each.is_symlink():
                    self._links.append((path, os.readlink(each.path)))
                elif each.is_dir():
                    self._folders.append((path, stat.S_IMODE(each.stat().st_mode)))
                    self._read(work, f"{path}/")
                else:
                    self._files.append(path)

    def make(self, folder: str) -> None:
        """Make such a working directory in the folder of a task, unless there is one. Safe to repeat."""
        work, aside = f"{folder}/{records.WORK}", f"{folder}/{records.WORK}.{os.getpid()}"
        if os.path.isdir(work):
            return
        if self._spare:
            spare, self._spare = self._spare, ""
            with contextlib.suppress(FileNotFoundError):  # somebody removed the folder of that task
                if self._stamped:
                    os.rename(f"{spare}/{records.COPIED}", f"{folder}/{records.COPIED}")
                os.rename(f"{spare}/{records.WORK}", work)
                return
        shutil.rmtree(aside, ignore_errors=True)
        os.mkdir(aside, 0o700)
        for path, mode in self._folders:
            os.mkdir(f"{aside}/{path}", mode)
        for path, target in self._links:
            os.symlink(target, f"{aside}/{path}")
        for path in self._files:
            shutil.copy2(f"{self._code}/{path}", f"{aside}/{path}", follow_symlinks=False)
            os.chmod(f"{aside}/{path}", stat.S_IMODE(os.stat(f"{aside}/{path}").st_mode) | stat.S_IWUSR)
        work_folder.stamp(f"{folder}/{records.COPIED}")
        if not self._stamped:
            os.unlink(f"{folder}/{records.COPIED}")
        os.rename(aside, work)
        self._state = self._now(work)

    def _now(self, work: str) -> State:
        found = {"": (0, os.stat(work).st_mtime_ns)}  # a renamed folder keeps only this time
        for path in (*(each for each, _mode in self._folders), *(each for each, _target in self._links), *self._files):
            about = os.lstat(f"{work}/{path}")
            found[path] = about.st_ino, about.st_ctime_ns
        return found

    def keep(self, folder: str) -> bool:
        """Keep the working directory of an ended task for the next one, if nothing in it has changed."""
        try:
            if self._spare or not self._state or self._now(f"{folder}/{records.WORK}") != self._state:
                return False
        except OSError:
            return False
        self._spare = folder
        return True

    def end(self) -> None:
        """Remove the working directory that was kept."""
        if self._spare:
            spare, self._spare = self._spare, ""
            self.tidy(spare)

    def count(self, folder: str) -> tuple[int, int]:
        """Return the disk space, in KB, and the number of the files that a call has written."""
        space = files = 0
        own = set(self._files)
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
            about = os.lstat(f"{work}/{path}")
            if self._state.get(path) == (about.st_ino, about.st_ctime_ns):
                return True
            return filecmp.cmp(f"{work}/{path}", f"{self._code}/{path}", shallow=False)
        except OSError:
            return False

    def tidy(self, folder: str) -> None:
        """Remove the links and the unchanged copies, and then empty folders."""
        work = f"{folder}/{records.WORK}"
        for path, target in self._links:
            with contextlib.suppress(OSError):
                if os.readlink(f"{work}/{path}") == target:
                    os.unlink(f"{work}/{path}")
        for path in self._files:
            if self._same(work, path):
                with contextlib.suppress(OSError):
                    os.unlink(f"{work}/{path}")
        if self._stamped:
            with contextlib.suppress(OSError):
                os.unlink(f"{folder}/{records.COPIED}")
        for at, _folders, _files in os.walk(work, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)
