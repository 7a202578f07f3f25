"""The working directory of a run on this machine: made of its code, measured and tidied up after the end.

As workdir.sh and ending.sh do it, without a program for each step. Standard library only: the process of a run imports
it. All paths are relative to the run folder, the current directory. OSError: leave it to those scripts.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The same as in yurt.model.layout, which the process of a run does not import.
WORK, COPIED, OUTPUTS, CHECKPOINTS = "work", "copied", "outputs", "checkpoints"

FEW, MOST = 200, 10_000_000
"""Code with more files or bytes is not copied here: scripts link it, or copy it while the run can be stopped."""

MEASURING = 20
"""Seconds after which measuring stops."""


def make(code: str, subfolder: str) -> None:
    """Make the folders of a start: its working directory with a copy of small code, and those for its results.

    Folders that exist stay. Without a working directory after this, job.sh makes it.
    """
    if not os.path.isdir(WORK) and (not code or _is_small(code)):
        aside = f"{WORK}.{os.getpid()}"
        try:
            if code:
                _copy(code, aside)
                stamp(COPIED)
            else:
                os.mkdir(aside, 0o700)
            os.rename(aside, WORK)
        except OSError:
            _remove(aside)
            raise
    for name in (OUTPUTS, CHECKPOINTS, *([f"{WORK}/{subfolder}"] if subfolder else [])):
        if os.path.isdir(WORK) and not os.path.isdir(name):
            os.makedirs(name, 0o700)


def _is_small(code: str) -> bool:
    """Return whether the list that belongs to a checkout says that it is small; False if there is none."""
    folder, name = os.path.split(code)
    try:
        with open(f"{folder}/.{name}.folders") as file:
            entries, size = (int(word) for word in file.readline().split())
    except (OSError, ValueError):
        return False
    return os.path.isdir(code) and entries <= FEW and size <= MOST


def _copy(source: str, target: str) -> None:
    """Copy a folder: modes and times are kept, and its owner can write to all of it."""
    found = os.stat(source)
    os.mkdir(target, 0o700)
    with os.scandir(source) as entries:
        for entry in entries:
            there = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), there)
            elif entry.is_dir():
                _copy(entry.path, there)
            else:
                _copy_file(entry.path, there)
    os.chmod(target, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _copy_file(source: str, target: str) -> None:
    with open(source, "rb", buffering=0) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{source} is not a file")
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as copy:
            while block := file.read(1 << 20):
                copy.write(block)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
            os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


def stamp(path: str) -> None:
    """Write a stamp that is older than what the command writes, however coarse the times of this disk are."""
    later = f"{path}.now"
    for name in (path, later):
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    end = time.monotonic() + 5
    while os.stat(later).st_mtime_ns <= os.stat(path).st_mtime_ns and time.monotonic() < end:
        time.sleep(0.001)
        os.utime(later)
    os.unlink(later)


def _remove(folder: str) -> None:
    for path, is_folder in _tree(folder):
        (os.rmdir if is_folder else os.unlink)(path)


def _tree(folder: str) -> Iterator[tuple[str, bool]]:
    """Yield all paths of a folder, what is in a folder before the folder, and whether each is a folder."""
    try:
        with os.scandir(folder) as found:
            entries = [*found]
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _tree(entry.path)
        else:
            yield entry.path, False
    yield folder, True


def measured() -> tuple[int, int] | None:
    """Return the KB that the results take and how many files they are; None if that takes too long."""
    end = time.monotonic() + MEASURING
    kb = files = 0
    seen: set[tuple[int, int]] = set()
    since = os.stat(COPIED).st_mtime_ns if os.path.exists(COPIED) else -1  # copies of the code are no results
    for name in (OUTPUTS, CHECKPOINTS, WORK):
        blocks = 0
        for path, is_folder in _tree(name) if _has_entries(name) else ():
            if time.monotonic() > end:
                return None
            found = os.lstat(path)
            if not is_folder and found.st_nlink > 1:
                if (found.st_dev, found.st_ino) not in seen:
                    blocks += found.st_blocks
                seen.add((found.st_dev, found.st_ino))
            else:
                blocks += found.st_blocks
            if stat.S_ISREG(found.st_mode):
                written = found.st_ctime_ns > since and "__pycache__" not in path.split("/")[1:-1]
                files += name != WORK or written
        kb += (blocks + 1) // 2
    return kb, files


def _has_entries(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except FileNotFoundError:
        return False


def tidy(code: str, *, keep_copy: bool) -> None:
    """Remove what nobody needs after the end: links to the code, unchanged copies of it, and empty folders."""
    unchanged = os.path.exists(COPIED) and not keep_copy and os.path.isdir(code)
    for path, is_folder in _tree(WORK):
        if is_folder:
            _remove_if_empty(path)
        elif (code and _leads_to_code(path)) or (unchanged and _same(path, code + path.removeprefix(WORK))):
            os.unlink(path)
    if unchanged:
        os.unlink(COPIED)
    for name in (OUTPUTS, CHECKPOINTS):
        _remove_if_empty(name)


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass


def _leads_to_code(path: str) -> bool:
    """Return whether a file is a link to a checkout, as `find -lname */projects/*/snapshots/*` finds it."""
    if not os.path.islink(path):
        return False
    return "/snapshots/" in os.readlink(path).partition("/projects/")[2]


def _same(one: str, two: str) -> bool:
    try:
        first, second = os.lstat(one), os.lstat(two)
        if stat.S_ISLNK(first.st_mode) and stat.S_ISLNK(second.st_mode):
            return os.readlink(one) == os.readlink(two)
        if not (stat.S_ISREG(first.st_mode) and stat.S_ISREG(second.st_mode)) or first.st_size != second.st_size:
            return False
        with open(one, "rb", buffering=0) as a, open(two, "rb", buffering=0) as b:
            while block := a.read(1 << 20):
                if block != b.read(1 << 20):
                    return False
        return True
    except OSError:
        return False
