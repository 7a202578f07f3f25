"""A command that runs on a host: its streams and its end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import IO, Protocol


class Silent(Exception):
    """The other side did not respond in time."""


class Command(Protocol):
    """A running command. Its streams are not buffered."""

    @property
    def stdin(self) -> IO[bytes]: ...
    @property
    def stdout(self) -> IO[bytes]: ...
    @property
    def stderr(self) -> IO[bytes] | None:
        """Standard error; None if it goes to a file."""

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code after the end of the command; 255 if the connection was lost. TimeoutError."""

    def end(self) -> None:
        """Stop waiting for the command, and close its streams without draining them."""


class ProgramCommand:
    """A command that a program of this machine runs, such as ssh."""

    def __init__(self, argv: Sequence[str], err: IO[bytes] | None) -> None:
        """`err`: a file for standard error; None: a pipe. FileNotFoundError if there is no such program."""
        import subprocess

        # A new session: a streamed script kills its whole process group.
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if err is None else err,
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self.stdin, self.stdout, self.stderr = self._process.stdin, self._process.stdout, self._process.stderr

    def wait(self, timeout: float | None = None) -> int:
        import subprocess

        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def end(self) -> None:
        if self._process.poll() is None:  # an ssh master may hold its pipes open
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
