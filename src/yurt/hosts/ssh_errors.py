"""Turns what ssh prints when it fails into errors a person can act on. Pure."""

from __future__ import annotations

import re

from yurt.errors import RefusedError, UnreachableError, YurtError

PROMPTS = ("keyboard-interactive", "password")


def classify(name: str, destination: str, words: str, *, asked: bool = False) -> YurtError:
    """The error behind ssh's words. `asked`: a person was there to answer its questions."""
    log_in = f"run yurt login {name}"
    for pattern, code, sentence, hint in TABLE:
        found = re.search(pattern, words, re.IGNORECASE)
        if found is None:
            continue
        kind = RefusedError if code in REFUSALS else UnreachableError
        if code == "ssh-denied":
            return _denied(name, destination, words, log_in, asked=asked)
        text = sentence.format(name=name, destination=destination, found=found.group(found.lastindex or 0))
        return kind(text, code=code, hint=hint.format(name=name, log_in=log_in))
    if asked:  # ssh spoke to the person itself
        return RefusedError(f"{name}: ssh could not log in to {destination}", code="ssh-failed")
    last = next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "it said nothing")
    return UnreachableError(f"{name}: ssh to {destination} failed: {last}", code="ssh-failed", hint=log_in)


def login_needed(name: str, why: str) -> UnreachableError:
    """The error that only `yurt login` can mend."""
    return UnreachableError(f"{name}: {why}", code="ssh-login-required", hint=f"run yurt login {name}")


def _denied(name: str, destination: str, words: str, log_in: str, *, asked: bool) -> YurtError:
    """Refused keys are final; a missing answer to a prompt is what `yurt login` is for."""
    ways = re.findall(r"Permission denied \(([^)]*)\)", words)
    if not asked and any(way in ways[-1] for way in PROMPTS if ways):
        return login_needed(name, f"{destination} wants an answer that only you can type (a password or code)")
    return RefusedError(
        f"{name}: {destination} refused your key" + (f" (it takes {ways[-1]})" if ways else ""),
        code="ssh-denied",
        hint=f"check the user name in slurm_url and your key; {log_in} if the key has a passphrase",
    )


REFUSALS = ("ssh-denied", "ssh-key-changed", "program-missing")

TABLE: tuple[tuple[str, str, str, str], ...] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "ssh-key-changed",
        "{name}: the host key of {destination} has changed: somebody may be in between, or the host was renewed",
        "ask the site; if it is right, remove the old key with ssh-keygen -R HOST and {log_in}",
    ),
    (
        r"Host key verification failed|No \S+ host key is known",
        "ssh-key-unknown",
        "{name}: the host key of {destination} is not known yet",
        "{log_in}: it shows the key's fingerprint and asks",
    ),
    (
        r"Could not resolve hostname (\S+?):",
        "ssh-no-such-host",
        "{name}: no host is called {found}",
        "check slurm_url: yurt context show {name}",
    ),
    (r"Permission denied|Too many authentication failures", "ssh-denied", "", ""),
    (
        r"(No route to host|Network is unreachable)",
        "ssh-no-route",
        "{name}: no way to {destination} ({found})",
        "check your network or VPN, then repeat",
    ),
    (
        r"Connection refused",
        "ssh-refused",
        "{name}: {destination} takes no connections now",
        "the login node may be down for maintenance; try later",
    ),
    (
        r"timed out|Timeout, server \S+ not responding",
        "ssh-timeout",
        "{name}: {destination} does not answer",
        "check your network or VPN, then repeat",
    ),
    (
        r"(Connection (?:closed|reset) by [^\n]*|kex_exchange_identification[^\n]*|Broken pipe)",
        "ssh-closed",
        "{name}: {destination} closed the connection",
        "repeat the command: it is safe to",
    ),
    (
        r"(\S+): program not found",
        "program-missing",
        "{name}: the program '{found}' is not on this machine",
        "install OpenSSH, or set ssh_command in the context",
    ),
)
"""(what ssh prints, error code, sentence, hint), the first that matches counts."""
