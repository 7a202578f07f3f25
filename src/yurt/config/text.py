"""A file of the user's as text."""

from __future__ import annotations

from pathlib import Path

from yurt.errors import UserError


def text_of(file: Path) -> str:
    """The file as text, lines ended by newlines; nothing where there is no file."""
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"{file} cannot be read: {reason}", code="config-invalid") from None
