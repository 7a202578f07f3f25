"""The browser of the user, for verbs that open a page."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from yurt.cli import app


def browser(*, wanted: bool) -> Callable[[str], bool] | None:
    """Return what opens a URL; None if the user does not want it, or if no browser would open in a window."""
    return _open if wanted and not app.current().json and _has_screen() else None


def _has_screen() -> bool:
    """Whether a browser would open in a window. Over ssh it would be one in the terminal, if any."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(url: str) -> bool:
    import webbrowser

    with contextlib.suppress(webbrowser.Error):
        return webbrowser.open(url)
    return False
