"""Who may log in to the ssh server of a dev node."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from yurt.node.dev import ssh

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+yEfQFNZ0mXgmy2N2tRGm2dHv9ulxYQ7XzQ8gSlbnk"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """The folder of a dev node with its ssh server."""
    tmp_path.chmod(0o700)
    assert ssh.prepare(str(tmp_path), {}, "/w")["sshd"]
    return tmp_path


@pytest.mark.parametrize(
    "wrong",
    [
        f'command="id" {KEY}',
        f"cert-authority {KEY}",
        f"{KEY} a\n{KEY} b",
        f"{KEY}\r{KEY}",
        f"{KEY} a\x0bb",
        f"# {KEY}",
        "ssh-ed25519",
        "",
    ],
)
def test_only_a_public_key_is_authorized(served: Path, wrong: str) -> None:
    """Not a line with options, and not two keys."""
    with pytest.raises(ssh.SshError, match="not a public ssh key"):
        ssh.authorize(str(served), wrong)
    assert (served / "ssh" / "authorized_keys").read_text() == ""


def test_a_key_is_authorized_once(served: Path) -> None:
    other = KEY.replace("J+y", "J+z")
    for key in (f"{KEY} one", f"{KEY} two", f"  {other}\n"):
        ssh.authorize(str(served), key)
    file = served / "ssh" / "authorized_keys"
    assert file.read_text() == f"{KEY} one\n{other}\n" and stat.S_IMODE(file.stat().st_mode) == 0o600
    ssh.prepare(str(served), {}, "/w")
    assert file.read_text() == f"{KEY} one\n{other}\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Port 22\n  kexalgorithms curve25519-sha256\nKexAlgorithms x\n", "kexalgorithms curve25519-sha256\n"),
        ("#KexAlgorithms x\nMatch User a\n  KexAlgorithms y\n", ""),
        (None, ""),
    ],
)
def test_the_key_exchange_is_that_of_the_site(tmp_path: Path, text: str | None, line: str) -> None:
    if text is not None:
        (tmp_path / "sshd_config").write_text(text)
    assert ssh._site_choice(str(tmp_path / "sshd_config")) == line


@pytest.mark.parametrize("mode", [0o770, 0o755])
def test_a_folder_that_others_can_enter_is_refused(served: Path, mode: int) -> None:
    (served / "ssh").chmod(mode)
    with pytest.raises(ssh.SshError, match="only you can use"):
        ssh.authorize(str(served), KEY)
