"""The ssh key of this machine for dev nodes: made once, for the user alone."""

from __future__ import annotations

import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from yurt.dev import keys
from yurt.errors import RefusedError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path / "a home"))
    return tmp_path / "a home"


def test_the_key_is_made_once_and_private() -> None:
    made = keys.public_key()
    assert made.startswith("ssh-ed25519 ") and keys.public_key() == made
    derived = subprocess.check_output(["ssh-keygen", "-y", "-f", str(keys.private_key())], text=True)
    assert derived.split()[:2] == made.split()[:2]
    assert stat.S_IMODE(keys.private_key().stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.folder().stat().st_mode) == 0o700
    assert sorted(each.name for each in keys.folder().iterdir()) == ["id_ed25519", "id_ed25519.pub"]


def test_two_at_once_have_the_same_pair() -> None:
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(lambda _each: keys.public_key(), range(4)))
    derived = subprocess.check_output(["ssh-keygen", "-y", "-f", str(keys.private_key())], text=True)
    assert {tuple(each.split()[:2]) for each in found} == {tuple(derived.split()[:2])}


def test_without_ssh_keygen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="'ssh-keygen' not found"):
        keys.public_key()
    assert not list(keys.folder().iterdir())
