"""Opens a page in the user's browser. The address has a token, so no command line contains it."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path

from yurt import private


def browse(folder: Path, url: str, opener: Callable[[str], bool]) -> bool:
    """Open an address by a private file in `folder` that leads to it; return whether that worked."""
    file = folder / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(url)}">\n'
    private.write(file, text.encode())
    return opener(file.as_uri())
