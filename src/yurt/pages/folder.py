"""The private folder of a page while it is open, and the path of its server's socket.

It is removed at the end. What a killed process has left is removed by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from yurt import private
from yurt.config import paths
from yurt.transport import sockets

LOCK = "lock"
"""In the folder of a page: locked while the page is open."""


class PageFolder(msgspec.Struct, frozen=True):
    """The files of one page."""

    folder: Path
    socket: Path
    """The socket of the server, in a private folder with a short path."""


@contextmanager
def page_folder() -> Iterator[PageFolder]:
    """Create the folder of a page, for as long as the context lasts. RefusedError if there is no place for sockets."""
    base = paths.data_home() / "pages"
    _clear(base)
    name = secrets.token_hex(4)
    made = PageFolder(base / name, _socket(name))
    paths.make_private(made.folder)
    with open(made.folder / LOCK, "wb", opener=private.opener) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield made
        finally:
            _remove(made)


def _socket(name: str) -> Path:
    return sockets.folder() / f"page-{name}"


def _clear(base: Path) -> None:
    """Remove the folders of pages whose process was killed."""
    for each in base.iterdir() if base.is_dir() else ():
        with contextlib.suppress(OSError), (each / LOCK).open("rb") as lock:  # OSError: the page is open, or just ends
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(PageFolder(each, _socket(each.name)))


def _remove(page: PageFolder) -> None:
    with contextlib.suppress(OSError):
        page.socket.unlink()
    shutil.rmtree(page.folder, ignore_errors=True)
