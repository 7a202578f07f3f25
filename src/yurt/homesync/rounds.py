"""One round: syncs every pair of hub and spoke, and releases the jobs that waited for it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec

from yurt.errors import RefusedError, UserError, YurtError
from yurt.homesync import client, here, ledger, places, profile, scripts, sync
from yurt.homesync.client import Start
from yurt.homesync.config import Homes
from yurt.homesync.outcomes import Outcome, Round, Skipped
from yurt.homesync.places import Pair, Place
from yurt.homesync.sync import Pass
from yurt.model.progress import Watch, unwatched

WHOLE = {"-batch": 0, "-auto": 0, "-terse": 0, "-silent": 0, "-times": 0, "-prefer": 1, "-force": 1}
"""Arguments, and how many values each has, with which a sync is still a sync of everything."""


def run(
    homes: Homes, only: Sequence[str] = (), *, watch: Watch = unwatched, extra_arguments: Sequence[str] = ()
) -> Round:
    """Sync all pairs, or those of the places in `only`; save the outcomes in the ledger and return them.

    A place that cannot be reached, a lock or another refusal is an Outcome with code 3 and its `problem`; the other
    pairs are synced nevertheless. `extra_arguments` go to Unison as they are; after `-prefer` and `-force`, the name
    of a place stands for its root. RefusedError if another sync runs on this machine.
    """
    pairs = places.pairs(homes, only)
    if not pairs:
        raise UserError("there is only one home", code="usage", hint="name a context: `yurt home sync CONTEXT`")
    with here.locked() as lock:
        start = me(lock)
        for each in {pair.client.name: pair.client for pair in pairs}.values():
            _prepare(each)
        passes = _passes(pairs, start, extra_arguments, watch)
        outcomes = [_total(passes[pair.name]) for pair in pairs if pair.name in passes]
        outcomes = finish(homes, pairs, passes, outcomes, full=whole(extra_arguments))
    ledger.add(outcomes)
    return Round(outcomes)


def me(lock: int) -> Start:
    """Return this machine as the one that starts a sync."""
    return Start(identity=here.identity(), name=os.uname().nodename, lock=lock)


def whole(arguments: Sequence[str]) -> bool:
    """Whether a sync with these arguments syncs everything, so that a good one releases jobs."""
    words = iter(arguments)
    for word in words:
        if word not in WHOLE:
            return False
        for _value in range(WHOLE[word]):
            next(words, None)
    return True


def arguments_for(pair: Pair, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the names of the pair's places replaced by roots, after `-prefer` and `-force`.

    A pair without the named place has nothing to prefer: it does not get these two words.
    """
    named, found = {place.name: place for place in pair.places}, list[str]()
    for word in arguments:
        if not found or found[-1] not in ("-prefer", "-force") or word not in pair.hub.homes.names:
            found.append(word)
        elif word in named:
            found.append(client.unison_root(pair, named[word]))
        else:
            found.pop()
    return found


def _prepare(place: Place) -> None:
    """Bring the profile up to date. A place that cannot be reached fails in its sync."""
    try:
        profile.ensure(place)
    except UserError:
        raise
    except YurtError:
        if place.here:
            raise


def _passes(pairs: Sequence[Pair], start: Start, arguments: Sequence[str], watch: Watch) -> dict[str, list[Pass]]:
    """Sync every pair, then again those that were synced before a later one changed the hub."""
    known = ledger.read()
    made = {
        pair.name: [
            sync.once(pair, _for(pair, start, known), arguments_for(pair, arguments), watch, known.unsure(pair.name))
        ]
        for pair in pairs
    }
    changed = [at for at, pair in enumerate(pairs) if made[pair.name][0].outcome.to_hub]
    for pair in pairs[: max(changed, default=0)]:
        if made[pair.name][0].outcome.code < 3:
            unsure = made[pair.name][0].outcome.unsure
            made[pair.name].append(
                sync.once(pair, _for(pair, start, known), arguments_for(pair, arguments), watch, unsure)
            )
    return made


def _for(pair: Pair, start: Start, known: ledger.Ledger) -> Start:
    return msgspec.structs.replace(start, known=known.is_known(pair.name))


def _total(passes: Sequence[Pass]) -> Outcome:
    """Return the outcome of all passes of a pair: the last one, and what all of them have copied."""
    outcomes = [each.outcome for each in passes]
    sizes = [each.size for each in outcomes if each.size is not None]
    return msgspec.structs.replace(
        outcomes[-1],
        began=outcomes[0].began,
        transferred=sum(each.transferred for each in outcomes),
        to_hub=sum(each.to_hub for each in outcomes),
        to_spoke=sum(each.to_spoke for each in outcomes),
        size=sum(sizes) if sizes else None,
        warnings=[warning for each in outcomes for warning in each.warnings],
    )


def finish(
    homes: Homes,
    pairs: Sequence[Pair],
    passes: dict[str, list[Pass]],
    outcomes: list[Outcome],
    *,
    full: bool,
) -> list[Outcome]:
    """Find the backups of a round and release the jobs that waited for it, in one operation per place, or none.

    The last sync of its pair counts for a spoke, with the jobs that waited when it started. For the hub all pairs
    count, with the jobs that waited when the first one started.
    """
    found = [*outcomes]
    every = full and len(pairs) == len(homes.names) - 1 and all(each.code == 0 for each in outcomes)
    for at, pair in enumerate(pairs):
        done = passes[pair.name]
        if outcomes[at].code < 3 and not all(each.idle for each in done):
            good = full and outcomes[at].code == 0
            found[at] = _finish_place(found[at], pair.spoke, done[-1].start.token, done, good=good)
    reached = [each for pair in pairs for each in passes[pair.name] if each.outcome.code < 3]
    if not all(each.idle for each in reached):
        first = passes[pairs[0].name][0]
        found[0] = _finish_place(found[0], pairs[0].hub, first.start.token, reached, good=every)
    return found


def _finish_place(outcome: Outcome, place: Place, token: str, passes: Sequence[Pass], *, good: bool) -> Outcome:
    until = time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() - place.homes.keep_seconds))
    words = [
        "1" if good else "",
        place.homes.backups,
        until,
        token,
        *(name for each in passes for name in each.folders),
    ]
    try:
        answer = place.run(scripts.finish(), *words)
        if answer.code and place.here:
            raise RefusedError(f"cannot finish the sync: {answer.errors}", code="home-sync-failed")
    except YurtError as error:
        late = "; jobs that wait for this sync are released by the next one" if good and not place.here else ""
        return msgspec.structs.replace(outcome, warnings=[*outcome.warnings, f"{error.message}{late}"])
    rows = [line.partition(" ")[::2] for line in os.fsdecode(answer.out).splitlines()]
    made = [text for word, text in rows if word == "backup"]
    return msgspec.structs.replace(
        outcome,
        released=[*outcome.released, *(f"{place.name}:{text}" for word, text in rows if word == "released")],
        left=[*outcome.left, *(f"{place.name}:{text}" for word, text in rows if word == "left")],
        backups={**outcome.backups, **({place.name: made} if made else {})},
    )


__all__ = ["Outcome", "Round", "Skipped", "run"]
