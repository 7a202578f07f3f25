"""One side of a copy between two hosts."""

from __future__ import annotations

from typing import NamedTuple

from yurt.errors import NotFoundError
from yurt.transport.base import Host


class Side(NamedTuple):
    """A file or folder of a host."""

    host: Host
    path: str
    guard: str = ""
    """What a target's host runs before anything is written: see `protected.script`."""

    def missing(self) -> NotFoundError:
        return NotFoundError(f"{self.host.name}:{self.path} does not exist", code="not-found")


SOURCE = (
    "s=$1; shift; LC_ALL=C; export LC_ALL; "
    'if [ -d "$s" ]; then kind=folder s=$s/; elif [ -e "$s" ] || [ -L "$s" ]; then kind=file; '
    'else echo "yurt: not-there" >&2; exit 3; fi; '
    'command -v rsync > /dev/null 2>&1 || { echo "yurt: no-rsync" >&2; exit 3; }; '
)
"""Checks a source and finds out whether it is a folder."""
