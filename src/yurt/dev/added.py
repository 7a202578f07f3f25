"""The packages that a user added on a dev node, and how a project declares them. Pure values."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from yurt.model.site_words import LETTERS, MALFORMED, made_of

IN_NAME = LETTERS + "._-+!"
"""The characters of names and versions: they become words of a command that the user may type."""


class AddedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package that was added on a dev node. Runs do not have it."""

    name: str
    """Its name, normalised."""
    version: str
    """Its version."""
    requested: bool = True
    """Whether the user installed it, and not only another package that requires it."""
    source: str = ""
    """The address that it was installed from; empty if that was a package index."""
    instead_of: str = ""
    """The version in the environment of runs; empty if it has none."""


def read(answer: Any) -> list[AddedPackage]:
    """Return the packages in an answer of a dev node; none if it is from an earlier version of yurt."""
    try:
        found = msgspec.convert(answer or [], list[AddedPackage])
    except MALFORMED:
        return []
    return [each for each in found if all(made_of(word, IN_NAME, 200) for word in (each.name, each.version))]


def requested(added: Sequence[AddedPackage]) -> list[AddedPackage]:
    """Return the packages that the user installed; all if their installer did not record that."""
    return [each for each in added if each.requested] or list(added)


def declaring(title: str, added: Sequence[AddedPackage]) -> str:
    """Return how to declare packages in the file `title` of a project; empty if they came from files of the node."""
    words = []
    for each in requested(added):
        if not each.source:
            words.append(f"{each.name}=={each.version}")
        elif not each.source.startswith("file:"):
            words.append(f"{each.name} @ {each.source}")
    if not words:
        return ""
    file = title.partition("[")[0]
    quoted = " ".join(map(shlex.quote, words))
    if file.endswith((".yml", ".yaml")):  # of conda
        return f"in the list `pip:` of {file}: {', '.join(words)}"
    if file.endswith(("uv.lock", "pyproject.toml")):
        return f"with `uv add {quoted}`"
    return f"with `printf '%s\\n' {quoted} >> {shlex.quote(file)}`"
