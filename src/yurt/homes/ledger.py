"""The outcomes of the last syncs of every pair, in yurt's data folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.config.lock import locked
from yurt.homes.outcomes import Outcome

KEPT = 20
"""Outcomes that are kept of each pair, besides the last good one."""

SAME = 3
"""Seconds: edits that are further apart have different times for Unison."""


class Conflict(msgspec.Struct, frozen=True):
    """A path that differs on the two places of a pair since their last sync."""

    hub: str
    spoke: str
    path: str
    why: str


class Ledger(msgspec.Struct, frozen=True):
    """The outcomes of every pair, oldest first."""

    outcomes: dict[str, list[Outcome]] = {}

    def last(self, pair: str) -> Outcome | None:
        """Return the last sync of all paths of a pair."""
        return next((each for each in reversed(self.outcomes.get(pair, [])) if not each.paths), None)

    def last_reached(self, pair: str) -> Outcome | None:
        """Return the last sync of all paths of a pair that reached its end."""
        found = reversed(self.outcomes.get(pair, []))
        return next((each for each in found if each.code < 3 and not each.paths), None)

    def last_good(self, pair: str) -> Outcome | None:
        """Return the last sync of all paths of a pair that ended with exit code 0."""
        found = reversed(self.outcomes.get(pair, []))
        return next((each for each in found if each.code == 0 and not each.paths), None)

    def is_known(self, pair: str) -> bool:
        """Return whether a sync of a pair has reached its end before."""
        return any(each.code < 3 for each in self.outcomes.get(pair, []))

    def reached(self, pair: str) -> float:
        """Return when the last sync of a pair that reached its end did so; 0 if there is none."""
        return max((each.ended for each in self.outcomes.get(pair, []) if each.code < 3), default=0.0)

    def unsure(self, pair: str) -> list[str]:
        """Return the files of which syncs were unsure, and no later sync of everything is sure.

        That is one that began when an edit could no longer have the same time.
        """
        known = self.outcomes.get(pair, [])
        settled = max((each.began for each in known if each.code < 3 and not each.paths), default=0.0)
        found = [path for each in known if each.ended + SAME > settled for path in each.unsure]
        return list(dict.fromkeys(found))

    def conflicts(self) -> list[Conflict]:
        """Return the paths that the last syncs skipped, and that no later sync of these paths has resolved."""
        return [
            Conflict(known[-1].hub, known[-1].spoke, path, why)
            for known in self.outcomes.values()
            for path, why in _open(known).items()
        ]


def _open(known: list[Outcome]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in known:
        if each.code == 3:
            continue  # it looked at nothing, or not at everything
        if each.paths:
            found = {path: why for path, why in found.items() if not any(_below(path, top) for top in each.paths)}
        else:
            found = {}
        found.update({skipped.path: skipped.why for skipped in each.skipped})
    return found


def _below(path: str, top: str) -> bool:
    return not top or path == top or path.startswith(f"{top}/")


def file() -> Path:
    return paths.data_home() / "homes.json"


def read() -> Ledger:
    """Return the ledger; an empty one if there is none, or if it cannot be read."""
    try:
        # json writes and reads the bytes of a name that is not UTF-8, as \udcff; msgspec does not.
        return msgspec.convert(json.loads(file().read_bytes()), Ledger)
    except (OSError, ValueError):
        return Ledger()


def add(outcomes: Iterable[Outcome]) -> None:
    """Append outcomes. OSError if the data folder is not writable."""
    with locked(file()):
        known = {pair: [*each] for pair, each in read().outcomes.items()}
        for outcome in outcomes:
            known[outcome.pair] = _trimmed([*known.get(outcome.pair, []), outcome])
        text = json.dumps(msgspec.to_builtins(Ledger(known)))
        paths.write_private(file(), text.encode())


def _trimmed(known: list[Outcome]) -> list[Outcome]:
    """Return the newest outcomes, the last good one, and what `conflicts` needs: everything since the last full one."""
    good = next((at for at in reversed(range(len(known))) if known[at].code == 0 and not known[at].paths), None)
    full = next((at for at in reversed(range(len(known))) if known[at].code < 3 and not known[at].paths), len(known))
    first = min(len(known) - KEPT, full)
    # Lists of paths may be long, and before the last full sync nobody reads them.
    short = [msgspec.structs.replace(each, skipped=[], failed=[], deletions=[]) for each in known[:full]]
    return [each for at, each in enumerate([*short, *known[full:]]) if at >= first or at == good]
