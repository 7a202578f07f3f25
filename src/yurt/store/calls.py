"""Files with the calls of sweeps that are not submitted yet; after submission, the run folder contains them."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from yurt.errors import RefusedError, here_is_full
from yurt.store.runs import Store

DAY = 86_400
"""Seconds after which a file without a sweep is regarded as left by a killed yurt."""


def keep(store: Store, sweep: str, content: bytes) -> None:
    """Save the calls of a sweep until it is submitted. On return they are safe on disk, even after a power failure."""
    folder = _folder(store)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _remove_old(store, folder)
    aside = f"{folder}/.{sweep}"
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, f"{folder}/{sweep}")
    except OSError as error:
        with suppress(OSError):
            os.unlink(aside)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(folder, error.strerror or "", hint="free some space") from None
        raise RefusedError(f"cannot write to {folder}: {error.strerror}", code="cannot-write") from None


def of(store: Store, sweep: str) -> bytes | None:
    """Return the calls of a sweep; None if they are not on this machine."""
    try:
        with open(f"{_folder(store)}/{sweep}", "rb") as file:
            return file.read()
    except OSError:
        return None


def _remove_old(store: Store, folder: str) -> None:
    """Remove the files of sweeps that have finished or no longer exist."""
    for name in os.listdir(folder):
        entry = store.get(name.lstrip("."))
        with suppress(FileNotFoundError):  # another yurt removed it
            old = time.time() - os.stat(f"{folder}/{name}").st_mtime > DAY
            if entry.status.final if entry is not None else old:
                os.unlink(f"{folder}/{name}")


def _folder(store: Store) -> str:
    return f"{os.path.dirname(store.file)}/calls"
