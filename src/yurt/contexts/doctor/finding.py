"""The result of a check: what yurt found, and what the user can do about it. Pure."""

from __future__ import annotations

import shlex
from typing import Literal

import msgspec

Outcome = Literal["ok", "warning", "fault", "skipped"]


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """A change that `yurt doctor --fix` offers: a command, or a new text of a file."""

    title: str
    """What it does, as a question without its question mark."""
    command: list[str] = []
    """The command that it runs; empty if it changes a file."""
    prompts: bool = False
    """Whether the command asks for a passphrase or a password, so that it needs a terminal."""
    file: str = ""
    """The file that it changes; empty if it runs a command."""
    before: str = ""
    """The text of the file now."""
    after: str = ""
    """The text of the file after the fix."""
    context: str = ""
    """The context that uses the ssh alias in `file` afterwards, if the user agrees."""
    shows: str = ""
    """A text to print first, such as a public key."""

    @property
    def line(self) -> str:
        """The command as typed in a shell."""
        return shlex.join(self.command)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One check and its result."""

    check: str
    """Name of the check."""
    result: Outcome
    """ok, warning, fault, or skipped if the check does not apply."""
    text: str
    """What was found, in words of yurt."""
    detail: str = ""
    """Words of the site, of ssh or of a file; a bug report leaves them out."""
    remedy: str = ""
    """What the user can do, with commands between backticks; empty if nothing is wrong."""
    fix: Fix | None = None
    """What `yurt doctor --fix` offers to do; null if yurt cannot fix it."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """The findings about this machine (`context` is empty) or about a context."""

    context: str
    findings: list[Finding]
    """The result of every check."""

    def count(self, *results: Outcome) -> int:
        return sum(each.result in results for each in self.findings)


def ok(check: str, text: str, detail: str = "") -> Finding:
    return Finding(check=check, result="ok", text=text, detail=detail)


def skipped(check: str, text: str, detail: str = "") -> Finding:
    return Finding(check=check, result="skipped", text=text, detail=detail)


def warning(check: str, text: str, remedy: str, *, detail: str = "", fix: Fix | None = None) -> Finding:
    return Finding(check=check, result="warning", text=text, detail=detail, remedy=remedy, fix=fix)


def fault(check: str, text: str, remedy: str, *, detail: str = "", fix: Fix | None = None) -> Finding:
    return Finding(check=check, result="fault", text=text, detail=detail, remedy=remedy, fix=fix)


def chmod(mode: str, path: str) -> Fix:
    """Return the fix for a path with wrong permissions."""
    return Fix(title=f"change the permissions of {path}", command=["chmod", mode, path])
