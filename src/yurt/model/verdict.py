"""How a run stands, as far as every machine that looks at it can know; and how machines come to agree. Pure.

The first yurt that sees a run ended puts its Standing into the run folder, as status.json, and all others adopt it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from yurt.model import tasks as numbering
from yurt.model.run import FINAL, State, Status
from yurt.model.state import Ending, Observation, next_status


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands; the content of status.json when it has ended."""

    state: State
    reason: str = ""
    """Why, in words."""
    native: str = ""
    """The scheduler's own word and reason."""
    job: str = ""
    node: str = ""
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    seconds: float | None = None
    """How long it ran, over all its starts; known when it has ended."""


class SweepVerdict(Verdict, frozen=True, kw_only=True, omit_defaults=True):
    """How a sweep stands; the content of its status.json when it has ended."""

    tasks: dict[str, Verdict] = {}
    """Tasks that never started, by their numbers as ranges: they have no folder to say it in."""

    def each(self) -> Iterator[tuple[int, Verdict]]:
        return ((number, each) for numbers, each in self.tasks.items() for number in numbering.numbers(numbers))


def verdict_of(status: Status) -> Verdict:
    """What of a status is no bookkeeping of one machine's."""
    fields = {name: getattr(status, name) for name in Verdict.__struct_fields__}
    if status.state in ("queued", "held", "requeued"):  # of its next start nobody knows; of its last one, not everybody
        fields |= {"node": "", "started": None}
    return Verdict(**fields)


def sweep_verdict(status: Status, tasks: Mapping[int, Status]) -> SweepVerdict:
    """The same of a sweep that has ended."""
    never: dict[Verdict, list[int]] = {}
    for number, each in tasks.items():
        if each.final and not each.started:
            never.setdefault(verdict_of(each), []).append(number)
    by_numbers = {numbering.ranges(numbers): each for each, numbers in never.items()}
    return SweepVerdict(**msgspec.structs.asdict(verdict_of(status)), tasks=by_numbers)


def adopt_sweep(status: Status, verdict: SweepVerdict) -> Status:
    """The status of a sweep after what stands in its folder is known; its state is that of its tasks."""
    return msgspec.structs.replace(status, reason=verdict.reason, job=verdict.job or status.job)


def read_sweep_verdict(text: bytes) -> SweepVerdict | None:
    """As `read_verdict`, of a sweep."""
    try:
        return msgspec.json.decode(text, type=SweepVerdict) if text else None
    except msgspec.MsgspecError:
        return None


def adopt(status: Status, verdict: Verdict | None, ending: Ending | None, now: float) -> Status:
    """A status after what stands in the run folder is known. A job's own ending outranks what others made of it."""
    after = status
    if verdict is not None and verdict.state in FINAL:
        after = msgspec.structs.replace(
            status, **msgspec.structs.asdict(verdict), missing_since=None, cancel_requested=False
        )
    if ending is not None and after.exit_code is None:
        after = next_status(after, Observation(ending=ending), now)
    return after


def read_verdict(text: bytes) -> Verdict | None:
    """What stands in status.json; None if nothing does, or a newer yurt's words for it are not known here."""
    try:
        return msgspec.json.decode(text, type=Verdict) if text else None
    except msgspec.MsgspecError:
        return None
