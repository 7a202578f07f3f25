"""The part of a run's status that all machines share, and how they agree on it. Pure.

The first yurt process that sees a run finished writes its Verdict to status.json in the run folder; others adopt it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from yurt.model import tasks as numbering
from yurt.model.run import FINAL, State, Status
from yurt.model.site_words import MALFORMED, plausible
from yurt.model.state import Ending, Observation, next_status


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The shared status of a run; the content of status.json when it has finished."""

    state: State
    reason: str = ""
    """Why the run is in this state, as text."""
    native: str = ""
    """The scheduler's state and reason."""
    job: str = ""
    node: str = ""
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    seconds: float | None = None
    """Total running time of all starts, in seconds; null until it has finished."""
    result_bytes: int | None = None
    """Disk space of its outputs, its checkpoints and its working directory at its end; null if that is unknown."""
    result_files: int | None = None
    """Number of files in them."""


class SweepVerdict(Verdict, frozen=True, kw_only=True, omit_defaults=True):
    """The shared status of a sweep; the content of its status.json when it has finished."""

    tasks: dict[str, Verdict] = {}
    """Tasks that never started, by task numbers as ranges; they have no run folder of their own."""
    natives: dict[str, str] = {}
    """Task numbers as ranges, by the scheduler's final state: exit.json does not contain it."""

    def each(self, count: int) -> Iterator[tuple[int, Verdict]]:
        """Yield the number of each task, of a sweep of so many tasks, that never started, and its verdict."""
        return ((number, each) for numbers, each in self.tasks.items() for number in numbering.below(numbers, count))

    def native_of_each(self, count: int) -> Iterator[tuple[int, str]]:
        """Yield the number of each task, of a sweep of so many tasks, with a recorded state, and the state."""
        pairs = self.natives.items()
        return ((number, native) for native, numbers in pairs for number in numbering.below(numbers, count))


def follows(status: Status) -> bool:
    """Whether the final state of a task follows from its exit.json, so that no status.json is needed."""
    return status.final and status.exit_code is not None and (status.signal is None or status.state == "failed")


def verdict_of(status: Status) -> Verdict:
    """Return the part of a status that does not depend on this machine."""
    fields = {name: getattr(status, name) for name in Verdict.__struct_fields__}
    if status.state in ("queued", "held", "requeued"):  # the next start is unknown, and not every machine saw the last
        fields |= {"node": "", "started": None}
    return Verdict(**fields)


def sweep_verdict(status: Status, tasks: Mapping[int, Status]) -> SweepVerdict:
    """Return the verdict of a finished sweep."""
    others: dict[Verdict, list[int]] = {}
    natives: dict[str, list[int]] = {}
    for number, each in tasks.items():
        if each.final and not each.started:
            others.setdefault(verdict_of(each), []).append(number)
        elif each.native and follows(each):
            natives.setdefault(each.native, []).append(number)
    return SweepVerdict(
        **msgspec.structs.asdict(verdict_of(status)),
        tasks={numbering.ranges(numbers): each for each, numbers in others.items()},
        natives={native: numbering.ranges(numbers) for native, numbers in natives.items()},
    )


def adopt_sweep(status: Status, verdict: SweepVerdict) -> Status:
    """Return the status of a sweep updated from its status.json; its state follows from its tasks."""
    return msgspec.structs.replace(status, reason=verdict.reason, job=verdict.job or status.job)


def read_sweep_verdict(text: bytes) -> SweepVerdict | None:
    """Parse the status.json of a sweep, like `read_verdict`."""
    try:
        found = plausible(msgspec.json.decode(text, type=SweepVerdict)) if text else None
        if found is None or not all(map(plausible, found.tasks.values())):
            return None
        few = all(numbering.count(each) <= numbering.MOST for each in (*found.tasks, *found.natives.values()))
        return found if few else None
    except MALFORMED:
        return None


def adopt(status: Status, verdict: Verdict | None, ending: Ending | None, now: float) -> Status:
    """Return a status updated from the run folder. The job's exit.json outranks a verdict."""
    after = status
    if verdict is not None and verdict.state in FINAL:
        fields = msgspec.structs.asdict(verdict)
        if verdict.result_files is None:  # an older yurt wrote the verdict
            fields |= {"result_bytes": status.result_bytes, "result_files": status.result_files}
        after = msgspec.structs.replace(status, **fields, missing_since=None, cancel_requested=False)
    if ending is not None and after.exit_code is None:
        after = next_status(after, Observation(ending=ending), now)
    if ending is not None and after.usage is None:
        after = msgspec.structs.replace(after, usage=ending.usage)
    return after


def read_verdict(text: bytes) -> Verdict | None:
    """Parse status.json; None if it is empty, or if a newer yurt wrote it in an unknown format."""
    try:
        return plausible(msgspec.json.decode(text, type=Verdict)) if text else None
    except MALFORMED:
        return None
