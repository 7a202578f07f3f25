"""Reads the user's text files."""

from __future__ import annotations

from pathlib import Path

from yurt.errors import UserError


def text_of(file: Path) -> str:
    """Return the file as text with \\n line endings; empty if it does not exist. UserError if it is unreadable."""
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"cannot read {file}: {reason}", code="config-invalid") from None
