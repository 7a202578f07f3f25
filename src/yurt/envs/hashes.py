"""Keeps the hashes that a project declares; uv replaces them by those of the package index."""

from __future__ import annotations

from collections.abc import Iterable

from yurt.envs import requirements
from yurt.envs.lock import SHA256, Lock, name_of
from yurt.errors import UserError


def kept(lock: Lock, title: str, declared: Iterable[requirements.Line]) -> Lock:
    """Return the lock with the declared hashes only, for packages that have some. UserError if none of them is left."""
    wanted: dict[str, set[str]] = {}
    for line in declared:
        if line.kind == "requirement" and (found := SHA256.findall(line.text)):
            wanted.setdefault(name_of(line.value), set()).update(found)
    if not wanted:
        return lock
    notes = [each for each in lock.text.splitlines() if each.startswith("#")]
    lines = [_restricted(line, wanted, title) for line in requirements.read(lock.text)]
    return Lock("".join(f"{each}\n" for each in [*notes, *lines]))


def _restricted(line: requirements.Line, wanted: dict[str, set[str]], title: str) -> str:
    name = name_of(line.value) if line.kind == "requirement" else ""
    if name not in wanted:
        return line.text
    hashes = sorted(wanted[name] & {*SHA256.findall(line.text)})
    if not hashes:
        raise UserError(
            f"{title} has hashes of {name}, and no file of {line.value} in the package index has one of them",
            code="config-invalid",
            hint="update the hashes if you trust the index; if not, examine the files, which may have been replaced",
        )
    return " \\\n    ".join([line.value, *(f"--hash=sha256:{each}" for each in hashes)])
