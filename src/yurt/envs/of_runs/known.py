"""What this machine and its sites have recorded about environments, for lists. Imports nothing that prepares them."""

from __future__ import annotations

import re

import msgspec

from yurt.config import contexts, paths


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of an environment beside it, for lists."""

    address: str
    title: str
    kind: str
    project: str
    python: str
    modules: list[str]
    packages: int
    created: float
    user: str
    host: str


def contexts_with_environments() -> list[str]:
    """Return the contexts for which this machine has prepared environments."""
    folder, known = paths.data_home() / "envs", contexts.load(contexts.default_file()).contexts
    files = folder.glob("*-*.json") if folder.exists() else ()
    names = {re.sub(r"-[0-9a-f]{16}(-\w+)?\.json$", "", file.name) for file in files}
    return sorted(names & known.keys())
