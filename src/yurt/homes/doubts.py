"""Doubtful files: those whose next edit Unison may not see, see sure.sh. The next sync looks at them more closely."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.homes import client, profile
from yurt.homes.ledger import SAME, Ledger
from yurt.homes.places import Pair

if TYPE_CHECKING:
    from yurt.homes.sync import Pass

MOST_PATHS, MOST_BYTES = 500, 50_000
"""For more files, a sync looks at the folders in the home that contain them."""


class Doubts(msgspec.Struct, frozen=True):
    """The files of a pair of which the last sync was unsure."""

    paths: list[str] = []
    noted: bool = True
    """Whether the sides noted how they were, so that most often nothing has to be compared."""


def find(pair: Pair, identity: str, known: Ledger) -> Doubts:
    """Return what is doubtful about a pair.

    The last sync may have been killed, or lost its connection: then nobody knows what it copied. If it ran on this
    machine, the files that were edited since it began are doubtful.
    """
    unsure = known.unsure(pair.name)
    began = _began(pair, identity) if pair.client.here else 0.0
    if began <= known.reached(pair.name):
        return Doubts(unsure)
    from yurt.homes import pending

    text = profile.read(pair.client)[1].decode(errors="surrogateescape")
    edited = pending.edited_here(Path(pair.client.folder), text, began - SAME)
    return Doubts(_few([*unsure, *edited]), noted=not edited)


def _began(pair: Pair, identity: str) -> float:
    """Return when the last Unison of a pair began on this machine; 0 if none did."""
    with suppress(OSError):
        return (profile.folder() / "yurt" / f"began.{client.record(pair, identity)}").stat().st_mtime
    return 0.0


def paths(passes: Sequence[Pass]) -> list[str]:
    """Return the paths that some passes copied."""
    return _few([path for each in passes for path in each.copied])


def text(passes: Sequence[Pass]) -> str:
    """Return these paths as lines for sure.sh."""
    return "\n".join("./" + path.replace("\n", "\1") for path in paths(passes))


def _few(found: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(found))
    if len(found) <= MOST_PATHS and sum(len(os.fsencode(path)) for path in found) <= MOST_BYTES:
        return found
    return sorted({path.partition("/")[0] for path in found})
