"""Starts and ends the process of TensorBoard."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from yurt import private
from yurt.errors import RefusedError, UserError
from yurt.pages.folder import PageFolder

PATIENCE = 60.0
"""Seconds that TensorBoard has to start; it needs one, or a few on a busy machine."""

LOG = "server.log"


def check_installed() -> None:
    """UserError if TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise UserError(
            "the package tensorboard is not installed",
            code="program-missing",
            hint="install it with `pip install 'yurt[tensorboard]'`",
        )


class Process:
    """A running TensorBoard."""

    def __init__(self, page: PageFolder, child: subprocess.Popen[bytes]) -> None:
        self._page, self._child = page, child

    def ended(self) -> bool:
        return self._child.poll() is not None

    def check(self) -> None:
        """RefusedError with its last words if it has ended."""
        if self.ended():
            raise RefusedError(f"the TensorBoard server ended: {self._last_words()}", code="server-failed")

    def until_listening(self) -> None:
        """Wait until it listens. RefusedError if it ends, or does not listen in time."""
        deadline = time.monotonic() + PATIENCE
        while not _listens(self._page.socket):
            self.check()
            if time.monotonic() > deadline:
                raise RefusedError("the TensorBoard server did not start in time", code="server-failed")
            time.sleep(0.05)

    def _last_words(self) -> str:
        try:
            lines = (self._page.folder / LOG).read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")


@contextmanager
def running(page: PageFolder, logdir: Path, seconds: float) -> Iterator[Process]:
    """Run TensorBoard over a log folder, which it reads every so many seconds, while the context lasts."""
    argv = [sys.executable, "-P", "-m", "yurt.node.service.tensorboard_server"]
    argv += [str(page.socket), str(logdir), f"{seconds:g}"]
    with open(page.folder / LOG, "wb", opener=private.opener) as log:
        # A session of its own: Ctrl-C in the terminal must not reach it before yurt has cleaned up.
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", start_new_session=True)
    try:
        yield Process(page, child)
    finally:
        child.kill()
        child.wait()
        if child.stdin is not None:
            child.stdin.close()


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as made, contextlib.suppress(OSError):
        made.connect(str(path))
        return True
    return False
