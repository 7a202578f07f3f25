"""Announces which files a running save relies on, so that retention by another process leaves them alone."""

import json
import os
import random
from typing import Iterable, Set

from yurt.node.backup import storage

MARK = "keeping"


class Keeping:
    """While it is entered, `kept` returns these names in every process, and all that contain the token."""

    def __init__(self, backups: str, names: Iterable[str]) -> None:
        self.names = list(names)
        self.token = "-%08x" % random.SystemRandom().getrandbits(32)
        self.path = storage.aside(backups, MARK)

    def __enter__(self) -> "Keeping":
        storage.write(self.path, json.dumps([self.token, *self.names]).encode("ascii"))
        return self

    def __exit__(self, *_: object) -> None:
        storage.remove(self.path)


def kept(backups: str, names: Iterable[str]) -> Set[str]:
    """Return which of these names running saves rely on. Marks of dead processes have to be removed before."""
    found: Set[str] = set()
    names = list(names)
    for name in names:
        if name.startswith(".") and name.endswith("." + MARK):
            content = storage.read(os.path.join(backups, name))
            try:
                token, *others = json.loads((content or b"").decode("ascii"))
            except ValueError:
                continue  # it was removed, or is being written: that save has yet to look which packs exist
            found.update(others, (each for each in names if token in each))
    return found
