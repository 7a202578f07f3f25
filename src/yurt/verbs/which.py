"""Which runs a user means: an id, the beginning of either of its parts, `-` or `@last`."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import NotFoundError, UserError
from yurt.store import Entry, Store

LAST = ("-", "@last")


def which(store: Store, words: Sequence[str]) -> list[Entry]:
    """The runs that are meant, each once. NotFoundError and UserError name the word that is wrong."""
    found: dict[str, Entry] = {}
    for word in words:
        entry = _one(store, word)
        found[entry.run.id] = entry
    return list(found.values())


def _one(store: Store, word: str) -> Entry:
    if word in LAST:
        newest = next(store.newest(1), None)
        if newest is None:
            raise NotFoundError("there are no runs yet", code="not-found", hint="yurt run train.py")
        return newest
    matches = store.matching(word.lower()) if word and word.isascii() else []
    if not matches:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    if len(matches) > 1 and word.lower() not in matches:
        shown = ", ".join(matches[:4]) + (" …" if len(matches) > 4 else "")
        raise UserError(f"'{word}' may be {len(matches)} runs: {shown}", code="usage", hint="type more of it")
    entry = store.get(word.lower() if word.lower() in matches else matches[0])
    if entry is None:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    return entry
