"""Reaches paths of any depth below a folder: the kernel refuses paths of more than 4,096 bytes."""

import os
from typing import Dict, Tuple

LONGEST = 2500
"""A path relative to the folder up to this length is used as it is; the folder's own path comes before it."""


class Reach:
    """The paths below one folder, in a form that system calls accept. Close it after use."""

    def __init__(self, folder: bytes) -> None:
        self.folder = folder
        self._start = os.path.join(folder, b"")
        self._open: Dict[bytes, int] = {}

    def __enter__(self) -> "Reach":
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._open.values():
            os.close(number)
        self._open = {}

    def path(self, below: bytes) -> bytes:
        """Return a path that system calls accept; OSError if a folder on the way does not exist."""
        if len(below) <= LONGEST:
            return self._start + below
        above, rest = split(below)
        return os.path.join(self.base(above), rest)

    def base(self, above: bytes) -> bytes:
        """Return the path of a folder that `split` returned: a long one is opened, and reached by its descriptor."""
        if not above:
            return self.folder
        if above not in self._open:
            way, rest = split(above)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            self._open[above] = os.open(os.path.join(self.base(way), rest), flags)
        return b"/proc/self/fd/%d" % self._open[above]


def split(below: bytes) -> Tuple[bytes, bytes]:
    """Return the part of a path that has to be opened first, or b"", and the rest."""
    if len(below) <= LONGEST:
        return b"", below
    at = below.rfind(b"/", 0, len(below) // LONGEST * LONGEST)
    return below[:at], below[at + 1 :]
