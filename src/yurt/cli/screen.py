"""A page of text that is printed again and again: in place on a terminal, else one after the other."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Self

from yurt.cli import app, render

ENTER, LEAVE = "\033[?1049h", "\033[?1049l"
"""Escape codes for the second screen of a terminal, which leaves the user's own one as it was."""

HOME = "\033[H\033[J"
"""Escape codes that clear the screen."""


class Screen:
    """Prints pages. As a context manager, it gives the terminal back at the end, also after an error."""

    def __init__(self) -> None:
        self._in_place = render.visual() and os.environ.get("TERM") not in render.NO_CONTROL
        self._entered = False
        self._pages = 0
        self._quiet = app.current().quiet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def drawing(self) -> Iterator[None]:
        """Print a page: what is printed inside."""
        if self._in_place:
            sys.stdout.write(HOME if self._entered else ENTER + HOME)
            self._entered = True
        elif self._pages:
            print()
        self._pages += 1
        yield
        sys.stdout.flush()

    def word(self, text: str) -> None:
        """Print a notice below the page."""
        if not self._quiet:
            print(f"yurt: {render.escaped(text)}", file=sys.stderr, flush=True)

    def close(self) -> bool:
        """Give the terminal back; return whether the pages have disappeared with that."""
        if not self._entered:
            return False
        self._entered = False
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
        return True
