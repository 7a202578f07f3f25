"""The secrets of a lab, created once and stored in its state folder: munge key, host keys, users' keys."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from yurt.config import paths
from yurt.lab.shell import run


def ssh_key(path: Path, comment: str) -> str:
    """Return the public line of the ed25519 key at `path`; create the key if it is missing or incomplete."""
    public = path.with_name(path.name + ".pub")
    if not (path.exists() and public.exists()):
        paths.make_private(path.parent)
        aside = path.with_name(f".{path.name}.new")
        for leftover in (aside, aside.with_name(aside.name + ".pub")):
            leftover.unlink(missing_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(aside)])
        aside.with_name(aside.name + ".pub").rename(public)
        aside.rename(path)
    return public.read_text().strip()


def munge_key(path: Path) -> bytes:
    if not path.exists():
        paths.write_private(path, os.urandom(128))
    return path.read_bytes()


def code(path: Path) -> str:
    """Return the six-digit code that serves as a second factor; create it if it is missing."""
    if not path.exists():
        paths.write_private(path, f"{secrets.randbelow(10**6):06d}\n".encode())
    return path.read_text().strip()
