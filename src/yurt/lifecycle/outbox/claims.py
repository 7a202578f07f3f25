"""Claims: one process at a time submits a run, or uploads a content. Nobody has to wait for a claim.

A claim is a lock on a file in the outbox's folder. It ends with its process, so a killed process leaves nothing stuck.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Literal, Self

from yurt.config import paths
from yurt.errors import here_is_full
from yurt.store.connection import FREE

Phase = Literal["", "submitting", "uploading"]
"""What the holder does; empty if there is none."""

DAY = 86400.0


class Claim:
    """A claim of this process. Use as a context manager, which releases it."""

    def __init__(self, file: str, descriptor: int) -> None:
        self._file, self._descriptor = file, descriptor

    def set_phase(self, phase: Phase) -> None:
        """Tell other processes what the holder does: a run may overtake another that is uploading."""
        with contextlib.suppress(OSError):  # a full disk; without a text, the phase is "submitting"
            os.pwrite(self._descriptor, phase[:1].encode(), 0)

    def release(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._file)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.release()


def take(name: str) -> Claim | None:
    """Claim a run or a content; None if another process, or another thread, holds it."""
    file = _file(name)
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise here_is_full(file, error.strerror or "", hint=FREE) from None
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        with contextlib.suppress(FileNotFoundError):
            if os.stat(file).st_ino == os.fstat(descriptor).st_ino:
                claim = Claim(file, descriptor)
                claim.set_phase("submitting")
                return claim
        os.close(descriptor)  # the last holder has removed this file


def phase(name: str) -> Phase:
    """Return what the process does that holds a claim. After `take` has failed: its file may outlive a holder."""
    try:
        return "uploading" if Path(_file(name)).read_bytes() == b"u" else "submitting"
    except FileNotFoundError:
        return ""


def collect() -> None:
    """Remove the files of processes that were killed more than a day ago."""
    for entry in os.scandir(paths.data_home() / "outbox"):
        with contextlib.suppress(OSError):
            if time.time() - entry.stat().st_mtime > DAY and (claim := take(entry.name)) is not None:
                claim.release()


def _file(name: str) -> str:
    folder = paths.data_home() / "outbox"
    paths.make_private(folder)
    return f"{folder}/{name}"
