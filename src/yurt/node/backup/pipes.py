"""Pipes between the programs of a backup."""

import fcntl
import io
import sys

PIECE = 1 << 20
SET_SIZE = 1031
"""fcntl's F_SETPIPE_SZ, which Python has no name for before 3.10."""


class Pieces:
    """Reads a descriptor piece by piece into one buffer: large new buffers would cost more than the reading."""

    def __init__(self, number: int) -> None:
        self._stream = io.FileIO(number, "rb", closefd=False)
        self._view = memoryview(bytearray(PIECE))

    def read(self) -> memoryview:
        """Return the next piece, which is valid until the next call; an empty one at the end."""
        return self._view[: self._stream.readinto(self._view) or 0]


def enlarge(pipe: int) -> None:
    """Let a pipe hold more, where the system allows it: fewer switches between the programs."""
    if sys.platform == "linux":
        try:
            fcntl.fcntl(pipe, SET_SIZE, PIECE)
        except OSError:
            pass
