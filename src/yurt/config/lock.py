"""A lock that allows one writer of a file at a time, across processes. The lock file is removed afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from yurt.config import paths
from yurt.model.progress import patience


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file inside the `with` block; wait for other holders. OSError if it cannot be created."""
    lock_file = file.parent / f".{file.stem}.lock"
    paths.make_private(file.parent)
    descriptor = _acquire(lock_file)
    try:
        yield
    finally:
        lock_file.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(lock_file: Path) -> int:
    import fcntl

    while True:
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks: each write is still atomic
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with patience(f"another yurt command that has locked {lock_file}"):
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.stat(lock_file).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # the previous holder removed the file; this lock is on a deleted file
