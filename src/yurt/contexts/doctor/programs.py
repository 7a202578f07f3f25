"""Programs on this machine: which are missing or too old, and which package has them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from yurt import __version__
from yurt.contexts.doctor.finding import Finding, fault, ok, skipped, warning


class Program(msgspec.Struct, frozen=True):
    """A program that yurt uses on this machine."""

    name: str
    flag: str
    oldest: tuple[int, ...]
    """The oldest version that works."""
    needed: bool
    use: str
    debian: str
    fedora: str
    homebrew: str


PROGRAMS = (
    Program("ssh", "-V", (7, 3), True, "every connection to a cluster", "openssh-client", "openssh-clients", "openssh"),
    Program("git", "--version", (2, 17), True, "the code of a run", "git", "git", "git"),
    Program("tar", "--version", (), True, "code and results", "tar", "tar", "gnu-tar"),
    Program("rsync", "--version", (), False, "faster downloads", "rsync", "rsync", "rsync"),
)


def check() -> list[Finding]:
    """Check Python, yurt and each program."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    return [ok("yurt", f"yurt {__version__}"), ok("python", f"Python {version}"), *map(_check, PROGRAMS), _unison()]


def _check(program: Program) -> Finding:
    if shutil.which(program.name) is None:
        found = fault if program.needed else warning
        return found(program.name, f"{program.name} is not installed; yurt uses it for {program.use}", install(program))
    line = first_line([program.name, program.flag])
    version = version_in(line)
    if version and version < program.oldest:
        oldest = ".".join(str(part) for part in program.oldest)
        text = f"{program.name} is too old: version {dotted(version)}; the oldest that works is {oldest}"
        return fault(program.name, text, install(program))
    return ok(program.name, f"{program.name} {dotted(version)}".strip())


def _unison() -> Finding:
    if shutil.which("unison") is None:
        return skipped("unison", "unison is not installed; only `yurt home`, which does not exist yet, will need it")
    return ok("unison", f"unison {dotted(version_in(first_line(['unison', '-version'])))}")


def install(program: Program) -> str:
    """Return the remedy for a missing program."""
    return (
        f"install it: `sudo apt install {program.debian}` on Debian and Ubuntu, `sudo dnf install {program.fedora}` on "
        f"Fedora, `brew install {program.homebrew}` on macOS"
    )


def first_line(argv: Sequence[str]) -> str:
    """Return the first line that a program prints; empty if it fails to start."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter((done.stdout + done.stderr).splitlines()), "")


def version_in(line: str) -> tuple[int, ...]:
    """Return the version in a program's first line: OpenSSH_9.2p1 is (9, 2), git version 2.39.5 is (2, 39, 5)."""
    found = re.search(r"(?<![\w.])v?(\d{1,9}(?:\.\d{1,9})+)|_(\d{1,9}\.\d{1,9})", line)
    return tuple(int(part) for part in (found[1] or found[2]).split(".")) if found else ()


def dotted(version: Sequence[int]) -> str:
    return ".".join(str(part) for part in version)
