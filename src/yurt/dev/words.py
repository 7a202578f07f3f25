"""Words about dev nodes that several commands print or complete."""

from __future__ import annotations

from yurt.contexts import folders
from yurt.dev import desks
from yurt.dev.desks import DEFAULT
from yurt.dev.holder import HolderStatus, phase_text
from yurt.dev.views import DevNode


def phase(each: DevNode) -> str:
    """Return what the holder of a running dev node does: `ready`, `restoring 40 %`."""
    return phase_text(HolderStatus(phase=each.phase, note=each.note, progress=each.progress))


def named(name: str) -> str:
    """Return the argument NAME of a command in a hint, after a space; empty for the default name."""
    return "" if name == DEFAULT else f" {name}"


def unfinished_names() -> list[str]:
    """Return the names of the dev nodes that have not finished, according to the index."""
    store = folders.known_store()
    return [] if store is None else [desk.name for desk in desks.unfinished(store)]
