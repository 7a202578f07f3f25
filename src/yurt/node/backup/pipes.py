"""Pipes between the programs of a backup."""

import fcntl
import sys

PIECE = 1 << 20
SET_SIZE = 1031
"""fcntl's F_SETPIPE_SZ, which Python has no name for before 3.10."""


def enlarge(pipe: int) -> None:
    """Let a pipe hold more, where the system allows it: fewer switches between the programs."""
    if sys.platform == "linux":
        try:
            fcntl.fcntl(pipe, SET_SIZE, PIECE)
        except OSError:
            pass
