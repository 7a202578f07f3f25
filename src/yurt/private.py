"""Creates files and folders that only their owner can access, whatever the umask is.

The rule: each file of yurt is created with an explicit mode. yurt never changes the umask of its own process, which may
be the user's program, and in which the user's commands and fetched files need the user's umask.
"""

from __future__ import annotations

import os
from pathlib import Path


def opener(path: str, flags: int) -> int:
    """Create a file with mode 0600: `open(path, "wb", opener=opener)`."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    absent = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(absent):
        each.mkdir(mode=0o700, exist_ok=True)


def write(file: Path, content: bytes) -> None:
    """Write a file, not atomically; a new one gets mode 0600."""
    with open(file, "wb", opener=opener) as stream:
        stream.write(content)
