"""One writer at a time for a file, across processes; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from yurt.config import paths


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the right to change a file inside the `with`; waits for whoever has it. OSError where none can be had."""
    beside = file.parent / f".{file.stem}.lock"
    paths.make_private(file.parent)
    descriptor = _take(beside)
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(descriptor)


def _take(beside: Path) -> int:
    import fcntl

    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks: each write is still atomic
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.stat(beside).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # whoever held it took the file away; what we locked is nobody's
