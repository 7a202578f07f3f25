"""Files of calls that have not arrived on their site yet; once a sweep is there, its folder has them."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from yurt.errors import RefusedError
from yurt.store.runs import Store

DAY = 86_400
"""Seconds after which what belongs to no sweep was left by a yurt that was killed."""


def keep(store: Store, sweep: str, content: bytes) -> None:
    """Keep the calls of a sweep until it is out; when this returns not even a power cut makes them vanish."""
    folder = _folder(store)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _tidy(store, folder)
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
        raise RefusedError(
            f"the calls could not be kept in {folder}: {error.strerror}", code="disk-full", hint="free some space"
        ) from None


def of(store: Store, sweep: str) -> bytes | None:
    """The calls of a sweep; None if they are not here, or not any more."""
    try:
        with open(f"{_folder(store)}/{sweep}", "rb") as file:
            return file.read()
    except OSError:
        return None


def _tidy(store: Store, folder: str) -> None:
    """Remove those of sweeps that have ended or are gone."""
    for name in os.listdir(folder):
        entry = store.get(name.lstrip("."))
        with suppress(FileNotFoundError):  # another yurt tidies too
            old = time.time() - os.stat(f"{folder}/{name}").st_mtime > DAY
            if entry.status.final if entry is not None else old:
                os.unlink(f"{folder}/{name}")


def _folder(store: Store) -> str:
    return f"{os.path.dirname(store.file)}/calls"
