"""Says once per context which of its keys yurt does not use. A failure of the record only repeats the sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.config import contexts, paths


def sentence(name: str, keys: Sequence[str]) -> str:
    """Return the sentence about the unused keys of a context."""
    return f"context '{name}' has keys of mrunner that yurt does not use: {', '.join(keys)}"


def all_of(name: str) -> list[str]:
    """Return the sentence about a context; none if yurt uses all its keys."""
    keys = contexts.read(contexts.default_file()).unused.get(name, ())
    return [sentence(name, keys)] if keys else []


def first_time(name: str) -> list[str]:
    """Return the sentence about a context, unless it was returned before for the same keys."""
    found = all_of(name)
    if not found:
        return []
    said = _said()
    if said.get(name) == found[0]:
        return []
    with contextlib.suppress(OSError):
        paths.write_private(_file(), msgspec.json.encode({**said, name: found[0]}))
    return found


def _said() -> dict[str, str]:
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        return {}


def _file() -> Path:
    return paths.data_home() / "cache" / "unused-keys.json"
