"""A look at the ctimes of both homes: if nothing has changed since the last sync, Unison need not run."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from zlib import crc32

import msgspec

from yurt.errors import YurtError
from yurt.homes import client, ignores, places, profile, scripts
from yurt.homes.ledger import Ledger
from yurt.homes.outcomes import Outcome
from yurt.homes.places import Pair, Place

LONGEST = 3600.0
"""Seconds after which Unison runs in any case: for a clock that was wrong."""

MARGIN = 2
"""Seconds, for file systems that store times in whole seconds."""

SCRIPT = Path(__file__).with_name("quick.sh")


def setup(pair: Pair, text: bytes) -> str:
    """Return a word that changes with the profile and with the settings of a pair."""
    words = [text, *(msgspec.json.encode((each.folder, each.settings, each.homes.backups)) for each in pair.places)]
    return f"{crc32(b' '.join(words)):08x}"


def look(pair: Pair, identity: str, known: Ledger, text: bytes) -> Outcome | None:
    """Return the outcome of a sync that has nothing to do; None if Unison has to find that out.

    `text` is the profile.
    """
    began = time.time()
    last = known.last(pair.name)
    full = next((each for each in reversed(known.outcomes.get(pair.name, [])) if each.setup), None)
    if (
        last is None
        or last.code
        or last.failed
        or full is None
        or not full.token
        or not began - LONGEST < full.began < began
    ):
        return None
    if full.setup != setup(pair, text) or known.outcomes[pair.name][-1] != last or known.unsure(pair.name):
        return None
    if full.transferred or not profile.only_ignores(text):  # what Unison has written itself is newer, too
        return None
    ignored = ignores.read(text.decode(errors="surrogateescape")).expression
    script = scripts.assign(margin=str(MARGIN)) + scripts.gate() + SCRIPT.read_text().replace("@IGNORED@", ignored)
    same: set[str] = set()

    def ask(place: Place) -> None:
        words = [client.record(pair, identity), place.folder.removeprefix("~/"), "1" if place.here else "", full.token]
        with suppress(YurtError):  # Unison says what is wrong
            if place.run(script, *words).text == "same\n":
                same.add(place.name)

    try:
        places.ready(pair.places)
    except YurtError:
        return None  # Unison's sync says what is wrong
    other = Thread(target=ask, args=(pair.server,), daemon=True)
    other.start()
    ask(pair.client)
    if pair.client.name in same:  # otherwise the answer of the other side does not matter
        other.join()
    if len(same) < len(pair.places):
        return None
    return Outcome(hub=pair.hub.name, spoke=pair.spoke.name, began=began, ended=time.time(), code=0)
