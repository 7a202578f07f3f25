"""After a round: finds the backups that it made, releases the jobs that waited for it, and notes doubtful files."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from threading import Thread

import msgspec

from yurt.errors import RefusedError, YurtError
from yurt.homes import client, confined, doubts, places, scripts
from yurt.homes.config import Homes
from yurt.homes.outcomes import Outcome
from yurt.homes.places import Pair, Place
from yurt.homes.sync import Pass
from yurt.transport.base import Answer

UNLISTED = "jobs on {} that wait for this sync could not be listed; the next one releases them"


def run(
    homes: Homes,
    pairs: Sequence[Pair],
    passes: Mapping[str, Sequence[Pass]],
    outcomes: Sequence[Outcome],
    *,
    full: bool,
) -> list[Outcome]:
    """Finish a round, in one operation per place, or none if nothing has happened there.

    The last sync of its pair counts for a spoke, with the jobs that waited when it started. For the hub all pairs
    count, with the jobs that waited when the first one started.
    """
    found = {pair.name: outcome for pair, outcome in zip(pairs, outcomes, strict=True)}
    done = [(pair, reached) for pair in pairs if (reached := _busy(passes[pair.name]))]
    if not done:
        return [*outcomes]
    every = full and len(pairs) == len(homes.names) - 1 and all(each.code == 0 for each in outcomes)
    answers: dict[str, _Answer] = {}

    def work(name: str, place: Place, token: str, some: Sequence[tuple[Pair, Sequence[Pass]]], good: bool) -> None:
        answers[name] = _finish(place, token, some, good=good)

    places.ready(place for pair in pairs for place in pair.places)
    threads = []
    for pair, reached in done:
        good = full and found[pair.name].code == 0
        words = (pair.name, pair.spoke, reached[-1].start.token, [(pair, reached)], good)
        threads.append(Thread(target=work, args=words))
        threads[-1].start()
    work("", pairs[0].hub, passes[pairs[0].name][0].start.token, done, every)
    for thread in threads:
        thread.join()
    for name in (*(pair.name for pair, _reached in done), ""):
        at = name or pairs[0].name
        found[at] = answers[name].added_to(found[at])
    doubtful = {name for each in answers.values() for name in each.doubtful}
    for pair, reached in done:
        if pair.name in doubtful:
            found[pair.name] = msgspec.structs.replace(found[pair.name], unsure=doubts.paths(reached))
    return [*found.values()]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What finish.sh printed on one place."""

    place: str
    rows: list[tuple[str, str]] = []
    doubtful: set[str] = set()
    """The names of pairs with doubtful files."""
    warnings: list[str] = []

    def added_to(self, outcome: Outcome) -> Outcome:
        made = [text for word, text in self.rows if word == "backup"]
        return msgspec.structs.replace(
            outcome,
            released=[*outcome.released, *(f"{self.place}:{text}" for word, text in self.rows if word == "released")],
            left=[*outcome.left, *(f"{self.place}:{text}" for word, text in self.rows if word == "left")],
            backups={**outcome.backups, **({self.place: made} if made else {})},
            warnings=[*outcome.warnings, *self.warnings],
        )


def _busy(passes: Sequence[Pass]) -> list[Pass]:
    """Return the passes of a pair that reached their end; none if no pass has changed anything."""
    reached = [each for each in passes if each.outcome.code < 3]
    return [] if all(each.idle for each in reached) else reached


def _run(place: Place, words: Sequence[str]) -> Answer:
    """Run finish.sh; on this machine in the same limits as Unison, which may have put links into its folders."""
    if not place.here or place.homes.unison_writes == "anywhere":
        return place.run(scripts.finish(), *words)
    answers: list[Answer] = []
    confined.call(lambda: answers.append(place.run(scripts.finish(), *words)), client.writable(place))
    return answers[0]


def _finish(place: Place, token: str, done: Sequence[tuple[Pair, Sequence[Pass]]], *, good: bool) -> _Answer:
    """Finish a round on one place."""
    records = {client.record(pair, passes[0].start.identity): pair.name for pair, passes in done}
    words = [
        "1" if good else "",
        place.homes.backups,
        time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() - place.homes.keep_seconds)),
        token,
        " ".join(name for _pair, passes in done for each in passes for name in each.folders),
        place.folder.removeprefix("~/"),
    ]
    for record, (_pair, passes) in zip(records, done, strict=True):
        words += [record, doubts.text(passes)]
    try:
        answer = _run(place, words)
        if answer.code and place.here:
            raise RefusedError(f"cannot finish the sync: {answer.errors}", code="home-sync-failed")
    except YurtError as error:
        late = "; jobs that wait for this sync are released by the next one" if good and not place.here else ""
        # Nothing was noted, so the next sync compares contents.
        return _Answer(place=place.name, doubtful={*records.values()}, warnings=[f"{error.message}{late}"])
    rows = [line.partition(" ")[::2] for line in os.fsdecode(answer.out).splitlines()]
    return _Answer(
        place=place.name,
        rows=rows,
        doubtful={records[text] for word, text in rows if word == "unsure" and text in records},
        warnings=[UNLISTED.format(place.name)] if ("unlisted", "") in rows else [],
    )
