"""Copies of inputs on the disk of a node, which all runs of the user on that node share.

A copy is named by its source, by the sizes and times in it, and by the boot of the node, so that a source that changed
gets a new copy. It is made aside, under an exclusive lock, and then renamed. Each run that uses it holds a shared lock,
which the kernel releases if the run is killed.
"""

import concurrent.futures
import fcntl
import hashlib
import os
import threading
import time
from typing import Callable, List, NamedTuple, Optional

from yurt.node.files import NodeError, private_folder, remove
from yurt.node.stage import archives, tree
from yurt.node.stage.words import amount, host, is_full

FOLDER = "copies"
THREADS = 8
"""Files that are copied at a time: a shared file system answers slowly."""

UNUSED = 3600.0
"""Seconds after which a copy that no run uses is removed."""

SPARE = 16 << 20
"""Bytes that stay free on the disk of the node."""


class Input(NamedTuple):
    """An input of a run: its name, and its path on the site."""

    name: str
    path: str


class Copy(NamedTuple):
    """A copy that this process uses, as its lock says."""

    path: str
    lock: int


def use(base: str, wanted: Input, say: Callable[[str], None]) -> Copy:
    """Return the copy of an input, made if there is none. NodeError says why there cannot be one."""
    folder = private_folder(os.path.join(base, FOLDER))
    entries = _look(wanted)
    copy = os.path.join(folder, _address(wanted.path, entries))
    while True:
        lock = _lock(copy + ".lock", fcntl.LOCK_SH)  # waits while another run makes it
        if os.path.isdir(copy):
            os.utime(copy + ".lock")
            return Copy(os.path.join(copy, "data"), lock)
        os.close(lock)
        lock = _lock(copy + ".lock", fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock < 0:
            time.sleep(0.05)
            continue
        try:
            if not os.path.isdir(copy):
                _make(base, copy, wanted, entries, say)
        finally:
            os.close(lock)


def release(copy: Copy, drop: bool) -> None:
    """Stop using a copy; with `drop`, remove it if no other run uses it."""
    folder = os.path.dirname(copy.path)
    try:
        os.utime(folder + ".lock")
    except OSError:
        pass
    os.close(copy.lock)
    if drop:
        _remove_unused(folder)


def clear(base: str, needed: Optional[int] = None) -> None:
    """Remove copies that no run has used for an hour; with `needed`, the oldest unused ones until so much is free."""
    folder = os.path.join(base, FOLDER)
    found = []
    for name in _names(folder):
        path = os.path.join(folder, name)
        copy = path[: -len(".lock")] if name.endswith(".lock") else path
        try:
            found.append((os.lstat(copy + ".lock").st_mtime, copy))
        except OSError:
            if not _is_being_made(name, path):
                remove(path)
    for used, copy in sorted(set(found)):
        if time.time() - used > UNUSED or (needed is not None and free(base) < needed):
            _remove_unused(copy)


def free(path: str) -> int:
    """Return the bytes that this user can write to the disk of a path."""
    about = os.statvfs(path)
    return about.f_bavail * about.f_frsize


def _look(wanted: Input) -> List[tree.Entry]:
    try:
        entries = tree.scan(wanted.path)
    except FileNotFoundError as error:
        if error.filename and os.path.realpath(wanted.path) != error.filename:
            raise NodeError("input %s: %s does not exist" % (wanted.name, error.filename)) from None
        raise NodeError("input %s: %s does not exist" % (wanted.name, wanted.path)) from None
    except OSError as error:
        problem = "input %s: cannot read %s: %s" % (wanted.name, error.filename or wanted.path, error.strerror)
        raise NodeError(problem) from None
    if not entries:
        raise NodeError("input %s: %s is neither a folder nor a file" % (wanted.name, wanted.path))
    return entries


def _address(path: str, entries: List[tree.Entry]) -> str:
    found = hashlib.sha256()
    try:  # what the disk had not written before a power failure is lost, so a copy is of one boot
        with open("/proc/sys/kernel/random/boot_id", "rb") as stream:
            found.update(stream.read())
    except OSError:
        pass
    found.update(os.fsencode(os.path.realpath(path)))
    for each in entries:
        found.update(
            b"\0%s\0%d\0%d" % (os.fsencode(each.path), each.size, 0 if each.kind == "folder" else each.changed)
        )
        found.update(each.kind.encode() + b"\0" + (os.fsencode(each.source) if each.kind == "link" else b""))
    return found.hexdigest()[:24]


def _make(base: str, copy: str, wanted: Input, entries: List[tree.Entry], say: Callable[[str], None]) -> None:
    unpacked = entries[0].kind == "file" and archives.is_archive(wanted.path)
    size = sum(each.size for each in entries)
    clear(base, size + SPARE)
    began, aside = time.monotonic(), "%s.%d.aside" % (copy, os.getpid())
    for attempt in (1, 2):
        try:
            if free(base) < size + SPARE:
                raise OSError(28, os.strerror(28), base)
            os.mkdir(aside, 0o700)
            _fill(os.path.join(aside, "data"), wanted, entries, unpacked)
            os.rename(aside, copy)
            break
        except OSError as error:
            remove(aside)
            if is_full(error) and attempt == 1:  # an archive grows
                clear(base, 1 << 62)
                continue
            if is_full(error):
                what = "%s (%s%s)" % (wanted.name, amount(size), ", packed" if unpacked else "")
                text = "input %s does not fit onto the disk of %s: %s free in %s"
                raise NodeError(text % (what, host(), amount(free(base)), base)) from None
            place = error.filename or wanted.path
            problem = "input %s: cannot copy %s: %s" % (wanted.name, place, error.strerror or error)
            raise NodeError(problem) from None
        except NodeError as error:
            remove(aside)
            raise NodeError("input %s: %s" % (wanted.name, error)) from None
        except BaseException:
            remove(aside)
            raise
    took = time.monotonic() - began
    if took >= 1:
        done = "unpacked" if unpacked else "copied"
        say("input %s (%s) %s to the disk of %s in %.0f s" % (wanted.name, amount(size), done, host(), took))


def _fill(target: str, wanted: Input, entries: List[tree.Entry], unpacked: bool) -> None:
    if unpacked:
        os.mkdir(target, 0o700)
        archives.unpack(wanted.path, target)
        _protect(target)
        return
    stop = threading.Event()

    def check() -> None:
        if stop.is_set():
            raise InterruptedError

    def copy(each: tree.Entry) -> None:
        mode = each.mode & 0o555 | 0o400
        tree.copy_file(each, os.path.join(target, each.path) if each.path else target, check, mode)

    folders = [each for each in entries if each.kind == "folder"]
    for each in folders:
        os.mkdir(os.path.join(target, each.path), 0o700)
    for each in entries:
        if each.kind == "link":
            os.symlink(each.source, os.path.join(target, each.path))
    files = [each for each in entries if each.kind == "file"]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        try:
            for batch in (files[at : at + 1000] for at in range(0, len(files), 1000)):
                for _done in pool.map(copy, batch):
                    pass
        except BaseException:
            stop.set()
            raise
    for each in reversed(folders):
        path = os.path.join(target, each.path)
        os.utime(path, ns=(each.changed, each.changed))
        os.chmod(path, 0o500)


def _protect(target: str) -> None:
    """Make what was unpacked read-only."""
    for top, folders, files in os.walk(target, topdown=False):
        for name in files + folders:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, 0o500 if os.path.isdir(path) else os.lstat(path).st_mode & 0o555 | 0o400)
    os.chmod(target, 0o500)


def _lock(path: str, how: int) -> int:
    """Return the descriptor of a locked file, which is still there; -1 if it is in use and `how` does not wait."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, how)
            if _is_current(lock, path):
                return lock
        except BlockingIOError:
            os.close(lock)
            return -1
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _is_current(lock: int, path: str) -> bool:
    try:
        return os.fstat(lock).st_ino == os.lstat(path).st_ino
    except OSError:
        return False


def _remove_unused(copy: str) -> None:
    """Remove a copy, unless a run uses it."""
    try:
        lock = os.open(copy + ".lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_current(lock, copy + ".lock"):
            return
        aside = "%s.%d.aside" % (copy, os.getpid())
        if os.path.isdir(copy):
            os.rename(copy, aside)
        os.unlink(copy + ".lock")
    except OSError:  # a run uses it
        return
    finally:
        os.close(lock)
    remove(aside)


def _is_being_made(name: str, path: str) -> bool:
    """Return whether the process that makes or removes NAME.PID.aside exists, or what has no lock is new."""
    if not name.endswith(".aside"):
        return time.time() - os.lstat(path).st_ctime < UNUSED
    try:
        os.kill(int(name.split(".")[-2]), 0)
    except ProcessLookupError:
        return False
    except (OSError, ValueError):
        pass
    return True


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
