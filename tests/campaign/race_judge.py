"""Judges races by the ledgers that the user's code wrote on each site: one start, one result, in one place. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from tests.campaign.ledger import Start, overlaps, read
from yurt.model.run import FINAL

WORK = """\
ledger=$1 rest=$3 place="$YURT_CONTEXT|$0|${YURT_PARAM_N:-0}|$YURT_RUN_DIR"
[ "$YURT_CONTEXT" != local ] || ledger=$2
say() { until echo "$1 $YURT_RUN_ID $YURT_RESTARTS $place $(date +%s.%N)" >> "$ledger"; do sleep 0.2; done; }
now() { echo $(($(date +%s%N) / 1000000)); }
say start
[ "$YURT_RESTARTS" = 0 ] || rest=1000
until=$(($(now) + rest))
while [ "$(now)" -lt "$until" ]; do
  say beat
  sleep 0.4
done
say end
"""
"""The user's code. Arguments: the label of the race, the ledgers of a cluster and of this machine, milliseconds."""


class Copy(msgspec.Struct, frozen=True):
    """One start of the code of a candidate, or of a task of one."""

    candidate: str
    """The run of the candidate; of a sweep, without the number of the task."""
    item: int
    context: str
    label: str
    folder: str
    start: Start


class Item(msgspec.Struct, frozen=True):
    """An item of a race as the index shows it; a race that is not a sweep has one."""

    number: int
    state: str
    reason: str
    context: str
    folder: str


class Race(msgspec.Struct, frozen=True):
    """A race as the index shows it."""

    id: str
    label: str
    candidates: Sequence[str]
    items: Sequence[Item]
    restarts: bool = False
    """Whether its code may be restarted on its site."""
    retries: int = 0
    """How many starts may be lost before its candidates are submitted again."""
    excused: str = ""
    """Why it need not complete, such as a cancellation."""

    def __str__(self) -> str:
        return f"{self.label} ({self.id})"


def copies(text: str) -> list[Copy]:
    """Return the starts in a ledger."""
    found = []
    for start in read(text):
        context, label, item, folder = start.host.split("|")
        found.append(Copy(start.run.partition(".")[0], int(item), context, label, folder, start))
    return found


def judge(race: Race, ledger: Iterable[Copy]) -> list[str]:
    """Return the violations of one race. `ledger` contains the starts of all sites."""
    own = [each for each in ledger if each.candidate in race.candidates]
    wrong = []
    for item in race.items:
        mine = [each for each in own if each.item == item.number]
        where = f"{race} item {item.number}" if len(race.items) > 1 else str(race)
        found = [
            *_started(mine, restarts=race.restarts, retries=race.retries),
            *_result(item, mine),
            *_over(item, race.excused),
        ]
        wrong += [f"{where}: {text}" for text in found]
    known = {item.number for item in race.items}
    wrong += [f"{race}: item {each.item} is not in the index, but ran" for each in own if each.item not in known]
    return wrong


def _started(mine: Sequence[Copy], *, restarts: bool, retries: int) -> list[str]:
    wrong = []
    if len({each.candidate for each in mine}) > 1 + retries:
        wrong.append(f"started by several candidates: {_texts(mine)}")
    elif len(mine) > 1 + retries and not restarts:
        wrong.append(f"started {len(mine)} times: {_texts(mine)}")
    ends = [each for each in mine if each.start.ended]
    if len(ends) > 1:
        wrong.append(f"ended {len(ends)} times: {_texts(ends)}")
    same = [msgspec.structs.replace(each.start, run="") for each in mine]
    wrong += [f"two copies ran at once: {one.host} and {two.host}" for one, two in overlaps(same)]
    return wrong


def _result(item: Item, mine: Sequence[Copy]) -> list[str]:
    """Return what is wrong with the winner that the index shows."""
    if item.state != "completed":
        return []
    ends = {(each.context, each.folder) for each in mine if each.start.ended}
    if not ends:
        return [f"completed, but its code did not end: {_texts(mine)}"]
    if (item.context, item.folder) not in ends:
        return [f"the index shows {item.context} {item.folder}, but it ended elsewhere: {_texts(mine)}"]
    return []


def _over(item: Item, excused: str) -> list[str]:
    if item.state not in FINAL:
        return [f"not over: {item.state} ({item.reason})"]
    if item.state != "completed" and not excused:
        return [f"did not complete: {item.state} ({item.reason})"]
    return []


def strays(races: Iterable[Race], ledger: Iterable[Copy]) -> list[str]:
    """Return the starts of code that belong to no race."""
    known = {candidate for race in races for candidate in race.candidates}
    return sorted(
        f"{each.label}: the code of {each.candidate} ran on {each.context}, but it is in no index"
        for each in ledger
        if each.candidate not in known
    )


def leftovers(place: str, *, jobs: Collection[str], keys: Collection[str], folders: Collection[str]) -> list[str]:
    """Return what races left on a site."""
    wrong = [f"{place}: a job is left: {job}" for job in jobs]
    wrong += [f"{place}: a key is left in authorized_keys: {key.split()[-1]}" for key in keys]
    return wrong + [f"{place}: a folder is left: {folder}" for folder in folders]


def _texts(mine: Iterable[Copy]) -> str:
    return ", ".join(
        f"{each.context} {each.candidate} restarts={each.start.generation}"
        f" {each.start.first:.2f}-{each.start.last:.2f}{'' if each.start.ended else ' (no end)'}"
        for each in mine
    )
