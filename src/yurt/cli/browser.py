"""Opens a page in the user's browser. The address has a token, so no command line contains it."""

from __future__ import annotations

import contextlib
import html
import webbrowser
from pathlib import Path

from yurt import private


def open_page(url: str, folder: Path) -> bool:
    """Open an address by a private file in `folder` that leads to it; False if there is no browser."""
    file = folder / "open.html"
    text = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(url)}">\n'
    private.write(file, text.encode())
    with contextlib.suppress(webbrowser.Error):
        return webbrowser.open(file.as_uri())
    return False
