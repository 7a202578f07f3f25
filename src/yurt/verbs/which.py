"""Which runs a user means: an id, the beginning of either of its parts, `-`, `@last` or `@last-sweep`.

A task of a sweep is SWEEP.NUMBER.
"""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import NotFoundError, UserError
from yurt.model import ids
from yurt.store import Entry, Store

LAST = ("-", "@last")
LAST_SWEEP = "@last-sweep"

DIGITS = 12
"""No sweep has a task whose number is longer."""


def which(store: Store, words: Sequence[str]) -> list[Entry]:
    """The runs that are meant, each once. NotFoundError and UserError name the word that is wrong."""
    found: dict[str, Entry] = {}
    for word in words:
        entry = _one(store, word)
        found[entry.run.id] = entry
    return list(found.values())


def _one(store: Store, word: str) -> Entry:
    first, dot, number = word.partition(".")
    if dot and number.isascii() and number.isdigit():
        return _task(store, word, first, number)
    if word in LAST:
        newest = next(store.newest(1), None)
        if newest is None:
            raise NotFoundError("there are no runs yet", code="not-found", hint="yurt run train.py")
        return newest
    if word == LAST_SWEEP:
        return _last_sweep(store)
    return _named(store, word, store.matching(word.lower()) if word and word.isascii() else [])


def _named(store: Store, word: str, matches: Sequence[str]) -> Entry:
    if not matches:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    if len(matches) > 1 and word.lower() not in matches:
        shown = ", ".join(matches[:4]) + (" …" if len(matches) > 4 else "")
        raise UserError(f"'{word}' may be {len(matches)} runs: {shown}", code="usage", hint="type more of it")
    entry = store.get(word.lower() if word.lower() in matches else matches[0])
    if entry is None:
        raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
    return entry


def _last_sweep(store: Store) -> Entry:
    newest = next((entry for entry in store.newest() if entry.run.sets), None)
    if newest is None:
        hint = "yurt run --grid lr=0.1,0.01 train.py"
        raise NotFoundError("there are no sweeps yet", code="not-found", hint=hint)
    return newest


def _task(store: Store, word: str, first: str, number: str) -> Entry:
    """A task, by whatever names its sweep. Of runs and sweeps that a word may be, only sweeps have tasks."""
    if first in (*LAST, LAST_SWEEP):
        sweep = _one(store, first)
    else:
        matches = store.matching(first.lower()) if first and first.isascii() else []
        if not matches:
            raise NotFoundError(f"there is no run '{word}'", code="not-found", hint="yurt ps")
        sweep = _named(store, first, [each for each in matches if ids.is_sweep(each)] or matches)
    run, shown = sweep.run, number if len(number) <= DIGITS else f"{number[:DIGITS]}…"
    if not run.sets:
        raise NotFoundError(
            f"run {run.id} is no sweep: it has no task {shown}", code="not-found", hint=f"yurt show {run.id}"
        )
    if len(number) > DIGITS or int(number) >= run.sets:
        raise NotFoundError(
            f"sweep {run.id} has no task {shown}, its tasks are 0 to {run.sets - 1}",
            code="not-found",
            hint=f"yurt show {run.id}",
        )
    entry = store.get(ids.task(run.id, int(number)))
    if entry is None:
        raise NotFoundError(f"the plan of sweep {run.id} is not on this machine", code="not-found", hint="yurt ps")
    return entry
