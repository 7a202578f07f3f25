"""The ssh key of this machine for dev nodes. No other program uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from yurt.config import paths
from yurt.config.lock import locked
from yurt.errors import RefusedError


def folder() -> Path:
    """Return the folder with the key and the host keys of dev nodes."""
    return paths.config_home() / "dev"


def private_key() -> Path:
    return folder() / "id_ed25519"


def public_key() -> str:
    """Return the public key; make the pair if there is none. RefusedError: ssh-keygen does not work."""
    file = private_key()
    public = file.with_name(file.name + ".pub")
    if not file.exists() or not public.exists():
        with locked(file):
            if not file.exists() or not public.exists():
                _make(file, public)
    return public.read_text().strip()


def _make(file: Path, public: Path) -> None:
    paths.make_private(file.parent)
    aside = Path(tempfile.mkdtemp(prefix=".key-", dir=file.parent))
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"yurt dev on {os.uname().nodename}"]
    try:
        done = subprocess.run(
            [*argv, "-f", str(aside / "key")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RefusedError(f"ssh-keygen cannot make a key: {done.stderr.strip()}", code="ssh-failed")
        for made in (aside / "key.pub", aside / "key"):
            paths.hand_over(made)
        os.replace(aside / "key.pub", public)
        os.replace(aside / "key", file)
    except FileNotFoundError:
        raise RefusedError(
            "program 'ssh-keygen' not found on this machine", code="program-missing", hint="install OpenSSH"
        ) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
