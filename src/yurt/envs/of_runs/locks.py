"""The locks of environments: on this machine, and beside environments that other machines had built."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from yurt.config import paths
from yurt.contexts import connect
from yurt.envs import addresses, requirements, resolve
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.requirements import Invalid
from yurt.model import layout
from yurt.model.context import Context


def file(address: str, context: str = "") -> Path:
    """Return where this machine keeps the lock of an environment: one that it chose itself, or that of a site.

    The lock of a site is used on this site only: the environment of another one would get the packages that it names.
    """
    return paths.data_home() / "envs" / (f"{address}-of-{context}.lock" if context else f"{address}.lock")


def known(context: Context, bases: Sequence[str], declared: Declared, address: str) -> Lock | None:
    """Return the lock that this or another machine chose; `bases`: yurt's folders on the site with environments."""
    for each in (file(address), file(address, context.name)):
        with suppress(OSError, UnicodeDecodeError, Invalid):  # damaged, or none
            mine = Lock(each.read_text())
            if mine.text and (mine.packages or mine.text.startswith("#")):
                return mine
    states = connect.backend(context).envs.look([layout.env(base, address) for base in bases])
    state = next((each for each in states if each.lock), None)
    found = Lock(state.lock.rstrip("\n") + "\n") if state is not None else None
    return keep(address, found, context.name) if found is not None and _is_declared(found, declared) else None


def _is_declared(lock: Lock, declared: Declared) -> bool:
    """Whether a lock of a site names no address but those of the declaration: this machine may download from them."""
    indexes = Lock("".join(f"{each}\n" for each in resolve.index_lines(declared))).without_passwords
    allowed = {line.text for line in requirements.read(indexes.text)}
    try:
        lines = requirements.read(lock.without_passwords.text)
    except Invalid:
        return False
    for line in lines:
        named = line.value.partition(" @ ")[2].partition(" ;")[0].strip()
        if line.text not in allowed and (line.kind != "requirement" or line.option):
            return False
        if line.kind == "requirement" and "@" in line.value and not (named and addresses.names(declared, named)):
            return False
    return True


def keep(address: str, lock: Lock, context: str = "") -> Lock:
    """Keep a lock on this machine: one that was chosen here, or that of a context."""
    paths.write_private(file(address, context), lock.text.encode())
    return lock
