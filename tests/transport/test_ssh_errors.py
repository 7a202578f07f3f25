"""ssh's error output, as its versions print it, and the errors it becomes."""

from __future__ import annotations

import pytest

from yurt.errors import RefusedError, UserError
from yurt.transport.base import refusal
from yurt.transport.ssh import SshHost
from yurt.transport.ssh_errors import classify

OUTPUTS = [
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
    ("kex_exchange_identification: Connection closed by remote host", "ssh-closed", 4),
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


@pytest.mark.parametrize(("output", "code", "exit_code"), OUTPUTS)
def test_output_becomes_an_error(output: str, code: str, exit_code: int) -> None:
    error = classify("big", "alice@big", output)
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.message.startswith("big: ") and error.hint
    assert "{" not in error.message + error.hint


@pytest.mark.parametrize(
    ("output", "waits"),
    [
        ("kex_exchange_identification: banner line 0: Not allowed at this time\nConnection closed by x port 22", True),
        ("kex_exchange_identification: Connection closed by remote host\nConnection closed by x port 22", True),
        ("Exceeded MaxStartups\nConnection closed by x port 22", True),
        ("Connection closed by x port 22", False),
        ("client_loop: send disconnect: Broken pipe", False),
    ],
)
def test_a_connection_that_ends_before_the_login(output: str, waits: bool) -> None:
    """sshd 9.8 and later close connections for a while after failed logins; repeating at once makes it worse."""
    error = classify("big", "alice@login", output)
    assert error.code == "ssh-closed" and error.hint.startswith("wait a minute") == waits


def test_a_rejected_key_names_the_next_steps() -> None:
    error = classify("big", "alice@login", "alice@login: Permission denied (publickey).")
    assert error.message == "big: alice@login rejected your ssh key (accepted methods: publickey)"
    steps = ["`ssh alice@login`", "`yurt context show big`", "`ssh-add`", "`yurt login big`"]
    assert sorted(steps, key=error.hint.index) == steps
    assert classify("big", "alice@login", "Too many authentication failures").message.endswith("rejected your ssh key")


def test_a_login_that_fails_after_its_prompts() -> None:
    error = classify("big", "alice@login", "", interactive=True)
    assert (error.message, error.code) == ("big: ssh could not log in to alice@login", "ssh-failed")
    assert error.hint == "test the connection with `ssh alice@login`"


def test_a_banner_before_the_error_does_not_mislead() -> None:
    banner = "Welcome. Sessions are timed out after an hour.\n"
    assert classify("b", "a@b", banner + "a@b: Permission denied (publickey).").code == "ssh-denied"


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ("cat: write error: No space left on device", "disk-full"),
        ("cat: write error: Disk quota exceeded", "quota-full"),
        ("mkdir: cannot create directory '/x': Permission denied", "site-refused"),
        ("", "site-refused"),
    ],
)
def test_why_a_file_was_not_written(errors: str, code: str) -> None:
    assert refusal("big", "cannot write '/x'", errors).code == code


def test_address_that_ssh_would_read_as_an_option() -> None:
    for address in ("-oProxyCommand=true", "a b", "a\0b", "a\nb"):
        with pytest.raises(UserError, match="is not a valid address"):
            SshHost("x", address)


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null"])
def test_socket_folder_that_cannot_be_created(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_RUNTIME_DIR", folder)
    with pytest.raises(RefusedError) as caught:
        SshHost("x", "alice@x")
    assert caught.value.code == "runtime-unsafe" and "YURT_RUNTIME_DIR" in caught.value.hint
