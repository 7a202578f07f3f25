"""A cache outside the repository for what tests download or build once: wheels, conda, Apptainer."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


class Unavailable(Exception):
    """Something that a test needs cannot be downloaded; the text says why."""


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of that name in the cache. `make` fills it once, also if several workers call at once.

    Skips the test if `make` raises Unavailable; an interrupted `make` is repeated.
    """
    folder = Path.home() / ".cache" / "yurt-test" / "downloads" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            aside = folder.with_name(f".{folder.name}.new")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir()
            try:
                make(aside)
            except Unavailable as error:
                pytest.skip(f"needs the network, to download {name}: {error}")
            aside.rename(folder)
    return folder
