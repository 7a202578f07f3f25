"""One round: syncs every pair of hub and spoke, and releases the jobs that waited for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from yurt.errors import UserError, YurtError
from yurt.homes import client, deletions, doubts, finish, here, ledger, places, profile, quick, sync
from yurt.homes.client import Start
from yurt.homes.config import Homes
from yurt.homes.deletions import Agree, Guard
from yurt.homes.outcomes import Outcome, Round, Skipped
from yurt.homes.places import Pair, Place
from yurt.homes.sync import Pass
from yurt.model.progress import Watch, unwatched

WHOLE = {"-batch": 0, "-auto": 0, "-terse": 0, "-silent": 0, "-times": 0, "-prefer": 1, "-force": 1}
"""Arguments, and how many values each has, with which a sync is still a sync of everything."""


def run(
    homes: Homes,
    only: Sequence[str] = (),
    *,
    watch: Watch = unwatched,
    extra_arguments: Sequence[str] = (),
    agree: Agree = deletions.refused,
    refill: str = "",
) -> Round:
    """Sync all pairs, or those of the places in `only`; save the outcomes in the ledger and return them.

    A place that cannot be reached, a lock or another refusal is an Outcome with code 3 and its `problem`; the other
    pairs are synced nevertheless. `extra_arguments` go to Unison as they are; after `-prefer` and `-force`, the name
    of a place stands for its root. Without them, large deletions are copied only if `agree`, and the place `refill` is
    filled again if it has lost everything. RefusedError if another sync runs on this machine.
    """
    pairs = places.pairs(homes, only)
    if not pairs:
        raise UserError("there is only one home", code="usage", hint="name a context: `yurt home sync CONTEXT`")
    with here.locked() as lock:
        start = msgspec.structs.replace(me(lock), refill=refill)
        profiles = {name: _prepare(each) for name, each in {pair.client.name: pair.client for pair in pairs}.items()}
        passes = _passes(pairs, start, extra_arguments, watch, profiles, agree=agree)
        outcomes = [_total(passes[pair.name]) for pair in pairs if pair.name in passes]
        outcomes = finish.run(homes, pairs, passes, outcomes, full=whole(extra_arguments))
    try:
        ledger.add(outcomes)
    except OSError as error:
        note = f"this sync is not recorded: cannot write {ledger.file()}: {error.strerror}"
        outcomes = [msgspec.structs.replace(each, warnings=[*each.warnings, note]) for each in outcomes]
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


def _prepare(place: Place) -> bytes:
    """Bring the profile up to date; return it. A place that cannot be reached fails in its sync."""
    try:
        return profile.ensure(place)
    except UserError:
        raise
    except YurtError:
        if place.here:
            raise
        return b""


def _passes(
    pairs: Sequence[Pair],
    start: Start,
    arguments: Sequence[str],
    watch: Watch,
    profiles: Mapping[str, bytes],
    *,
    agree: Agree,
) -> dict[str, list[Pass]]:
    """Sync every pair, then again those that were synced before a later one changed the hub."""
    known = ledger.read()
    made: dict[str, list[Pass]] = {}

    def guard(pair: Pair) -> Guard | None:
        text = profiles[pair.client.name].decode(errors="surrogateescape")
        return None if arguments else Guard(text, agree)

    for pair in pairs:
        text = profiles[pair.client.name]
        seen = None if arguments else quick.look(pair, start.identity, known, text)
        if seen is not None:
            made[pair.name] = [Pass(outcome=seen, start=start, folders=[], idle=True)]
            continue
        found = sync.NO_DOUBTS if arguments else doubts.find(pair, start.identity, known)
        done = sync.once(
            pair, _for(pair, start, known), arguments_for(pair, arguments), watch, found, guard=guard(pair)
        )
        made[pair.name] = [_with_setup(done, quick.setup(pair, text))]
        if not arguments and done.outcome.conflicts and _give_one_time(pair, done.outcome.conflicts):
            again = _for(pair, start, known).another(again=True)
            made[pair.name].append(
                _with_setup(sync.once(pair, again, (), watch, guard=guard(pair)), quick.setup(pair, text))
            )
    changed = [at for at, pair in enumerate(pairs) if any(each.outcome.to_hub for each in made[pair.name])]
    for pair in pairs[: max(changed, default=0)]:
        if made[pair.name][-1].outcome.code < 3:
            again = _for(pair, start, known).another(again=bool(made[pair.name][0].outcome.setup))
            done = sync.once(pair, again, arguments_for(pair, arguments), watch, guard=guard(pair))
            made[pair.name].append(_with_setup(done, quick.setup(pair, profiles[pair.client.name])))
    return made


def _give_one_time(pair: Pair, skipped: Sequence[Skipped]) -> bool:
    from yurt.homes import equal

    return equal.give_one_time(pair, skipped)


def _with_setup(done: Pass, setup: str) -> Pass:
    return msgspec.structs.replace(done, outcome=msgspec.structs.replace(done.outcome, setup=setup))


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
        deleted=sum(each.deleted for each in outcomes),
        size=sum(sizes) if sizes else None,
        warnings=[warning for each in outcomes for warning in each.warnings],
        token=next((each.token for each in outcomes if each.token), ""),
    )


__all__ = ["Outcome", "Round", "Skipped", "run"]
