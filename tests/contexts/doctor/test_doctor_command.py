"""`yurt doctor` in a terminal: what it prints, and `--fix`, which shows each change and asks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.user import User, said
from yurt.config import contexts

CONTEXTS = """\
contexts:
  big:
    type: slurm
    slurm_url: alice@127.0.0.1
"""


@pytest.fixture(autouse=True)
def home(user: User) -> Path:
    """A home folder whose ~/.ssh has a configuration, and a context without an ssh alias."""
    folder = user.home / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    (folder / ".ssh" / "config").write_text("Host other\n  User bob\n")
    (folder / ".ssh" / "config").chmod(0o600)
    config = user.home / "config"
    config.mkdir(mode=0o700)
    (config / "contexts.yaml").write_text(CONTEXTS)
    (config / "contexts.yaml").chmod(0o600)
    user.environment["HOME"] = str(folder)
    return folder


def test_fix_shows_each_change_and_asks(user: User, home: Path) -> None:
    terminal = user.spawn("doctor", "--fix", "big")
    terminal.expect("no private key in ~/.ssh")
    terminal.expect(r"\$ ssh-keygen -t ed25519 -f \S+/home/.ssh/id_ed25519")
    terminal.expect(r"create an ed25519 key \(.*\[y/N\]")
    assert not (home / ".ssh" / "id_ed25519").exists(), "nothing is changed without a yes"
    terminal.sendline("y")
    terminal.expect("Enter passphrase")
    terminal.sendline("")
    terminal.expect("again")
    terminal.sendline("")
    terminal.expect(r"done; your public key:\s+ssh-ed25519 ")
    terminal.expect(r"\+Host big")
    terminal.expect(r"add the ssh alias 'big' to ~/.ssh/config\? \[y/N\]")
    assert "big" not in (home / ".ssh" / "config").read_text()
    terminal.sendline("y")
    terminal.expect(r"use the alias as slurm_url of context 'big'\? \[y/N\]")
    terminal.sendline("y")
    terminal.expect("done")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 1, "the site of the context cannot be reached"
    assert (home / ".ssh" / "id_ed25519").stat().st_mode & 0o777 == 0o600
    text = (home / ".ssh" / "config").read_text()
    assert text == "Host other\n  User bob\n\nHost big\n  HostName 127.0.0.1\n  User alice\n"
    assert contexts.load(user.home / "config" / "contexts.yaml").contexts["big"].slurm_url == "big"


def test_no_is_an_answer(user: User, home: Path) -> None:
    before = {file: file.read_bytes() for file in user.home.rglob("*") if file.is_file() and "data" not in file.parts}
    terminal = user.spawn("doctor", "--fix", "big")
    for question in ("create an ed25519 key", "add the ssh alias"):
        terminal.expect(question)
        terminal.expect(r"\[y/N\]")
        terminal.sendline("n")
    terminal.expect(pexpect.EOF)
    assert {file: file.read_bytes() for file in before} == before and not (home / ".ssh" / "id_ed25519").exists()


def test_fix_in_a_script(user: User, home: Path) -> None:
    assert said(user.quick("doctor", "local", "--fix"), 2).startswith("--fix asks before each change")
    key = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    key.chmod(0o640)
    done = user.quick("doctor", "local", "--fix", "--yes")
    assert done.code == 1 and f"$ chmod 600 {key}\n" in done.err
    assert key.stat().st_mode & 0o777 == 0o600
    again = user.quick("doctor", "local", "--fix", "--yes")
    assert again.code == 0 and "nothing that yurt can fix" in again.err


@pytest.mark.parametrize("columns", [80, 140])
def test_it_fits_the_terminal(user: User, columns: int) -> None:
    terminal = user.spawn("doctor", "local", "-v", columns=columns)
    terminal.expect(pexpect.EOF)
    lines = str(terminal.before).replace("\r", "").split("\n")
    plain = [re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", line) for line in lines]
    # Paths are not broken, so that they can be copied.
    assert max(len(line) for line in plain if " s  " not in line and str(user.home) not in line) <= columns
    assert any("\x1b[32m✓" in line for line in lines)


def test_words_without_colours(user: User) -> None:
    done = user("doctor", "local")
    assert "\x1b" not in done.out and "  ! no private key in ~/.ssh" in done.out and "checks passed" in done.out


def test_words_for_a_screen_reader(user: User) -> None:
    lines = user.quick("doctor", "local", "--plain").out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("warning: no private key"))
    assert lines[at + 1].startswith("remedy: create one with")


def test_a_context_that_is_invalid_is_not_left_out_silently(user: User) -> None:
    file = user.home / "config" / "contexts.yaml"
    file.write_text("contexts:\n  bad: {type: slurm, slurm_url: a@b, nokey: 1}\n")
    done = user.quick("cluster", "--all")
    assert done.code == 2 and "context 'bad' is invalid and was not queried" in done.err
    assert done.out.startswith("local: this machine")


def test_unknown_context(user: User) -> None:
    assert said(user.quick("doctor", "bgi"), 3) == "context 'bgi' not found; did you mean 'big'?"
