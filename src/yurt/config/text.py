"""Reads the user's text files, within limits that no real file reaches."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from yurt.config import paths
from yurt.errors import UserError
from yurt.model.sizes import MB, megabytes

LARGEST = 8 * MB
"""Maximum size of a configuration file in bytes."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DEEPEST = 200
"""Maximum nesting of lists and mappings. YAML parsers written in C crash at some depth."""


def text_of(file: Path, *, trusted: bool = False) -> str:
    """Return the file as text with \\n line endings; empty if it does not exist. UserError if it is unreadable.

    A `trusted` file decides which programs run on this machine: UserError if another user can change it.
    """
    try:
        content = content_of(file, trusted=trusted)
        if _depth(content) > DEEPEST:
            raise UserError(f"cannot read {file}: it is nested more than {DEEPEST} levels deep", code="config-invalid")
        return content.removeprefix(BYTE_ORDER_MARK).decode().replace("\r\n", "\n")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(
            f"cannot read {file}: line {line} is not UTF-8 text",
            code="config-invalid",
            hint="save the file as UTF-8 in your editor",
        ) from None
    except OSError as error:
        hint = paths.own_place(str(file))
        raise UserError(f"cannot read {file}: {error.strerror}", code="config-invalid", hint=hint) from None


MOST_TOML = 500_000
"""Maximum number of values of a file in TOML format: about those of the largest uv.lock."""

MOST_DOTS, ALL_DOTS = 500, 50_000
"""Maximum numbers of dots of a key, and of those of long keys together."""


def toml(text: str, most: int = MOST_TOML) -> dict[str, Any]:
    """Return the content of a text in TOML format.

    ValueError with the reason, also if the parser of the standard library would take minutes or gigabytes: for keys
    with many dots.
    """
    import tomllib

    if sum(map(text.count, "=,[{")) > most:
        raise ValueError(f"it has more than {most:,} values")
    together = 0
    for number, line in enumerate(text.splitlines() if text.count(".") > MOST_DOTS else (), 1):
        dots = max(part.count(".") for part in line.split("=")) if line.count(".") > MOST_DOTS / 10 else 0
        together += dots
        if dots > MOST_DOTS:
            raise ValueError(f"a key has more than {MOST_DOTS} dots (at line {number})")
    if together > ALL_DOTS:
        raise ValueError(f"its keys have more than {ALL_DOTS:,} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_size(file: Path, about: os.stat_result) -> None:
    """UserError if a file is larger than any configuration."""
    if about.st_size > LARGEST:
        raise UserError(
            f"cannot read {file}: it is {megabytes(about.st_size)} MB; the limit is {megabytes(LARGEST)} MB",
            code="config-invalid",
        )


def content_of(file: Path, *, trusted: bool = False) -> bytes:
    """Read a regular file, or a pipe that the shell passes as /dev/fd/N. Never waits for another pipe.

    UserError for anything else, and for a file that is too large. OSError if it cannot be read.
    """
    piped = str(file).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    with os.fdopen(os.open(file, os.O_RDONLY | (0 if piped else os.O_NONBLOCK)), "rb") as opened:
        about = os.fstat(opened.fileno())
        if not piped and not stat.S_ISREG(about.st_mode):
            raise UserError(f"cannot read {file}: it is not a regular file", code="config-invalid")
        if trusted:
            paths.check_owner(file, about, opened.fileno())
        check_size(file, about)
        content = opened.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise UserError(f"cannot read {file}: it is larger than {megabytes(LARGEST)} MB", code="config-invalid")
        return content


def _depth(content: bytes) -> int:
    """Return an upper bound of the nesting of brackets, or of list items on one line."""
    depth = deepest = 0
    if content.count(b"[") + content.count(b"{") > DEEPEST:
        for bracket in re.findall(rb"[\[\]{}]", content):
            depth += 1 if bracket in b"[{" else -1
            deepest = max(deepest, depth)
    for line in content.splitlines():
        if len(line) > 2 * DEEPEST:
            runs = (each.end() - each.start() for each in re.finditer(rb"(?:[-?:] )++", line))
            deepest = max(deepest, max(runs, default=0) // 2)
    return deepest
