"""The locks of environments: on this machine, and beside environments that other machines had built."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from yurt.config import paths
from yurt.contexts import connect
from yurt.envs.lock import Lock
from yurt.envs.requirements import Invalid
from yurt.model import layout
from yurt.model.context import Context


def file(address: str) -> Path:
    """Return where this machine keeps the lock of an environment."""
    return paths.data_home() / "envs" / f"{address}.lock"


def known(context: Context, bases: Sequence[str], address: str) -> Lock | None:
    """Return the lock that this or another machine chose; `bases`: yurt's folders on the site with environments."""
    with suppress(OSError, UnicodeDecodeError, Invalid):  # damaged, or none
        mine = Lock(file(address).read_text())
        if mine.text and (mine.packages or mine.text.startswith("#")):
            return mine
    states = connect.backend(context).envs.look([layout.env(base, address) for base in bases])
    state = next((each for each in states if each.lock), None)
    return keep(address, Lock(state.lock.rstrip("\n") + "\n")) if state is not None else None


def keep(address: str, lock: Lock) -> Lock:
    """Keep a lock on this machine."""
    paths.write_private(file(address), lock.text.encode())
    return lock
