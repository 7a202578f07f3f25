"""Files with the calls of sweeps that are not submitted yet; after submission, the run folder contains them."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from yurt.errors import RefusedError, here_is_full
from yurt.private import make_folder
from yurt.store.runs import Store

DAY = 86_400
"""Seconds after which a file without a sweep is removed, on a file system without locks."""

_held: dict[str, int] = {}
"""Locked files of this process whose sweeps are not in the index yet. The end of the process unlocks them."""


def keep(store: Store, sweep: str, content: bytes) -> None:
    """Save the calls of a sweep until it is submitted. On return they are safe on disk, even after a power failure.

    The file is locked until `release`, which the caller calls once the sweep is in the index: without a sweep and
    without a lock, it was left by a killed process, and `collect` removes it.
    """
    folder = _folder(store)
    make_folder(Path(folder))
    collect(store)
    aside = f"{folder}/.{sweep}"
    descriptor = _create_locked(aside)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(aside, f"{folder}/{sweep}")
    except OSError as error:
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(aside)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(folder, error.strerror or "", hint="free some space") from None
        raise RefusedError(f"cannot write to {folder}: {error.strerror}", code="cannot-write") from None
    _held[sweep] = descriptor


def release(sweep: str) -> None:
    """Unlock the calls of a sweep that is now in the index, or was rejected."""
    descriptor = _held.pop(sweep, None)
    if descriptor is not None:
        os.close(descriptor)


def _create_locked(path: str) -> int:
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # `collect` of another process removed the file before it was locked


def of(store: Store, sweep: str) -> bytes | None:
    """Return the calls of a sweep; None if they are not on this machine."""
    try:
        with open(f"{_folder(store)}/{sweep}", "rb") as file:
            return file.read()
    except OSError:
        return None


def collect(store: Store) -> None:
    """Remove the files of sweeps that have finished, and of those that a killed process did not add to the index."""
    folder = _folder(store)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name in _held:
            continue
        entry = store.get(name.lstrip("."))
        with suppress(FileNotFoundError):  # another yurt removed it
            if entry.status.final if entry is not None else _abandoned(store, folder, name):
                os.unlink(f"{folder}/{name}")


def _abandoned(store: Store, folder: str, name: str) -> bool:
    """Return whether a file without a sweep belongs to no living process."""
    descriptor = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CLOEXEC)  # NFS locks only writable files
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return store.get(name.lstrip(".")) is None  # its process may have added the sweep just before it unlocked
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return time.time() - os.fstat(descriptor).st_mtime > DAY
    finally:
        os.close(descriptor)


def _folder(store: Store) -> str:
    return f"{os.path.dirname(store.file)}/calls"
