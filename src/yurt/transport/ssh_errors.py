"""Turns ssh's error output into errors that the user can act on. Pure."""

from __future__ import annotations

import re
import shlex

from yurt.errors import RefusedError, UnreachableError, YurtError

PROMPTS = ("keyboard-interactive", "password")


RETRY = "run the command again; it is safe to retry"
"""The hint for an interrupted operation: every operation of a host may be repeated."""

WAIT = (
    "wait a minute, then run the command again: login nodes reject new connections for a while after failed logins, "
    "or if there are too many at once"
)
"""The hint for a connection that ended before the login. OpenSSH 9.8 and later penalise failed logins."""


def classify(name: str, destination: str, output: str, *, interactive: bool = False) -> YurtError:
    """Return the error that ssh's output stands for. `interactive`: ssh could prompt the user."""
    log_in = f"run `yurt login {name}`"
    for pattern, code, sentence, hint in TABLE:
        found = re.search(pattern, output, re.IGNORECASE)
        if found is None:
            continue
        kind = RefusedError if code in REFUSALS else UnreachableError
        if code == "ssh-denied":
            return _denied(name, destination, output, interactive=interactive)
        text = sentence.format(name=name, destination=destination, found=found.group(found.lastindex or 0))
        return kind(text, code=code, hint=hint.format(name=name, log_in=log_in, host=_host(destination, output)))
    if interactive:  # ssh has printed the reason itself
        return RefusedError(
            f"{name}: ssh could not log in to {destination}",
            code="ssh-failed",
            hint=f"test the connection with `ssh {destination}`",
        )
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no error message")
    return UnreachableError(f"{name}: ssh to {destination} failed: {last}", code="ssh-failed", hint=log_in)


def _host(destination: str, output: str) -> str:
    """Return the host as known_hosts lists it, quoted for a shell."""
    found = re.search(r"Host key for (\S+) has changed", output)
    return shlex.quote(found[1] if found is not None else destination.rpartition("@")[2])


def login_needed(name: str, why: str) -> UnreachableError:
    """Return the error for a connection that needs a prompt; only `yurt login` can open it."""
    return UnreachableError(f"{name}: {why}", code="ssh-login-required", hint=f"run `yurt login {name}`")


def _denied(name: str, destination: str, output: str, *, interactive: bool) -> YurtError:
    """A rejected key is final; a site that asks for a password or a code needs `yurt login`."""
    methods = re.findall(r"Permission denied \(([^)]*)\)", output)
    if not interactive and any(method in methods[-1] for method in PROMPTS if methods):
        return login_needed(name, f"{destination} asks for a password or a code")
    return RefusedError(
        f"{name}: {destination} rejected your ssh key" + (f" (accepted methods: {methods[-1]})" if methods else ""),
        code="ssh-denied",
        hint=f"test with `ssh {destination}`; check the user name in slurm_url with `yurt context show {name}`; "
        f"load the key with `ssh-add`, or run `yurt login {name}` if the key has a passphrase",
    )


REFUSALS = ("ssh-denied", "ssh-key-changed", "program-missing")

TABLE: tuple[tuple[str, str, str, str], ...] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "ssh-key-changed",
        "{name}: the host key of {destination} has changed; the host may have been reinstalled, or someone may be "
        "intercepting the connection",
        "ask the site's administrators; if the new key is genuine, remove the old one with `ssh-keygen -R {host}` "
        "and {log_in}",
    ),
    (
        r"Host key verification failed|No \S+ host key is known",
        "ssh-key-unknown",
        "{name}: the host key of {destination} is unknown",
        "{log_in}; it shows the key's fingerprint and asks you to confirm it",
    ),
    (
        r"Could not resolve hostname (\S+?):",
        "ssh-no-such-host",
        "{name}: host '{found}' not found",
        "check slurm_url with `yurt context show {name}`",
    ),
    (r"Permission denied|Too many authentication failures", "ssh-denied", "", ""),
    (
        r"(No route to host|Network is unreachable)",
        "ssh-no-route",
        "{name}: {destination} is unreachable: {found}",
        "check your network or VPN, then run the command again",
    ),
    (
        r"Connection refused",
        "ssh-refused",
        "{name}: {destination} refused the connection",
        "the login node may be down for maintenance; try again later",
    ),
    (
        r"timed out|Timeout, server \S+ not responding",
        "ssh-timeout",
        "{name}: the connection to {destination} timed out",
        "check your network or VPN, then run the command again",
    ),
    (
        r"Not allowed at this time|Exceeded MaxStartups|kex_exchange_identification",
        "ssh-closed",
        "{name}: {destination} closed the connection before the login",
        WAIT,
    ),
    (
        r"(Connection (?:closed|reset) by [^\n]*|Broken pipe)",
        "ssh-closed",
        "{name}: {destination} closed the connection",
        RETRY,
    ),
    (
        r"(\S+): program not found",
        "program-missing",
        "{name}: program '{found}' not found on this machine",
        "install OpenSSH, or set `ssh_command` in the context",
    ),
)
"""(pattern of ssh's output, error code, message, hint). The first match decides."""
