"""ssh's words, as its versions print them, and the errors they become."""

from __future__ import annotations

import pytest

from yurt.errors import RefusedError, UserError
from yurt.hosts import SshHost
from yurt.hosts.base import refusal
from yurt.hosts.ssh_errors import classify

WORDS = [
    ("ssh: Could not resolve hostname nope: Name or service not known", "ssh-no-such-host", 4),
    ("ssh: connect to host x port 22: No route to host", "ssh-no-route", 4),
    ("ssh: connect to host x port 22: Network is unreachable", "ssh-no-route", 4),
    ("ssh: connect to host x port 22: Connection refused", "ssh-refused", 4),
    ("ssh: connect to host x port 22: Connection timed out", "ssh-timeout", 4),
    ("ssh: connect to host x port 22: Operation timed out", "ssh-timeout", 4),
    ("Connection timed out during banner exchange", "ssh-timeout", 4),
    ("Timeout, server x not responding.", "ssh-timeout", 4),
    ("Connection closed by 10.0.0.1 port 22", "ssh-closed", 4),
    ("kex_exchange_identification: read: Connection reset by peer", "ssh-closed", 4),
    ("alice@x: Permission denied (publickey).", "ssh-denied", 5),
    ("alice@x: Permission denied (publickey,keyboard-interactive).", "ssh-login-required", 4),
    ("alice@x: Permission denied (publickey,password).", "ssh-login-required", 4),
    ("Received disconnect from x port 22:2: Too many authentication failures", "ssh-denied", 5),
    ("Host key verification failed.", "ssh-key-unknown", 4),
    ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "ssh-key-changed", 5),
    ("ssh: program not found", "program-missing", 5),
    ("something nobody has seen before", "ssh-failed", 4),
    ("", "ssh-failed", 4),
]


@pytest.mark.parametrize(("words", "code", "exit_code"), WORDS)
def test_words_become_errors(words: str, code: str, exit_code: int) -> None:
    error = classify("big", "alice@big", words)
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.message.startswith("big: ") and error.hint
    assert "{" not in error.message + error.hint


def test_banner_before_the_refusal_does_not_mislead() -> None:
    banner = "Welcome. Sessions are timed out after an hour.\n"
    assert classify("b", "a@b", banner + "a@b: Permission denied (publickey).").code == "ssh-denied"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("cat: write error: No space left on device", "disk-full"),
        ("cat: write error: Disk quota exceeded", "quota-full"),
        ("mkdir: cannot create directory '/x': Permission denied", "site-refused"),
        ("", "site-refused"),
    ],
)
def test_why_a_file_was_not_written(words: str, code: str) -> None:
    assert refusal("big", "'/x' could not be written", words).code == code


def test_address_that_ssh_would_take_for_an_option() -> None:
    for address in ("-oProxyCommand=true", "a b", "a\0b", "a\nb"):
        with pytest.raises(UserError, match="is no address"):
            SshHost("x", address)


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null"])
def test_folder_for_connections_that_cannot_be_made(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_RUNTIME_DIR", folder)
    with pytest.raises(RefusedError) as caught:
        SshHost("x", "alice@x")
    assert caught.value.code == "runtime-unsafe" and "YURT_RUNTIME_DIR" in caught.value.hint
