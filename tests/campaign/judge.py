"""The verdict: what the ledger says of each run, beside what yurt says of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tests.campaign.ledger import Start, overlaps
from yurt.model.run import Status

MERCY = 10.0
"""Seconds a cancelled job has to end: Slurm kills it five seconds after it told it to."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what each client says of it, what its code wrote, what the site did."""

    run: str
    label: str
    statuses: list[Status]
    starts: list[Start]
    restarts: int = 0
    cancelled: bool = False
    """Whether the user wished it to end."""
    told: float | None = None
    """When the site had been told so."""
    shaken: bool = False
    """Whether the controller crashed soon before or after it was made."""
    called: int = 0
    """How often sbatch was called for it."""
    begun: int = 0
    """How often Slurm began a job of it."""
    passed: int = 0
    """How many of those passed the gate."""

    @property
    def fault(self) -> str:
        return self.label.partition("-")[0]

    @property
    def rough(self) -> bool:
        """Whether Slurm itself may have killed its job, running or at its gate."""
        return self.shaken or self.fault in ("crash", "node")


class Count(msgspec.Struct):
    """One line of the table."""

    runs: int = 0
    submissions: int = 0
    refused: int = 0
    once: int = 0
    twice: int = 0
    never: int = 0
    cancelled: int = 0
    """Of those that never started: kept from it by the user."""
    killed: int = 0
    """Of those that never started: past the gate, and then killed by Slurm."""
    again: int = 0
    """Of those that ran once: started anew, as they may, after the first start was over."""
    stranded: int = 0


def count(cases: Sequence[Case]) -> dict[str, Count]:
    """The table, by fault."""
    table: dict[str, Count] = {}
    for case in cases:
        row = table.setdefault(case.fault, Count())
        row.runs += 1
        row.submissions += case.called
        row.refused += max(0, case.begun - case.passed)
        row.stranded += not all(status.final for status in case.statuses)
        if twice(case):
            row.twice += 1
        elif case.starts:
            row.once += 1
            row.again += len(case.starts) > 1
        elif case.cancelled:
            row.cancelled += 1
        elif killed(case):
            row.killed += 1
        else:
            row.never += 1
    return table


def twice(case: Case) -> bool:
    """Whether its code was started more often than allowed, or in two places at once."""
    generations = [start.generation for start in case.starts]
    return (
        len(generations) > case.restarts + 1 or len(set(generations)) < len(generations) or bool(overlaps(case.starts))
    )


def killed(case: Case) -> bool:
    """Whether Slurm itself ended it before its code began, and says so: past the gate, or before it.

    After a crash Slurm gives ids again, and ends the new job of an id by what it hears of the old one.
    """
    slurm_says = all(status.native.startswith(("CANCELLED", "FAILED")) for status in case.statuses)
    return not case.starts and not case.cancelled and case.rough and (case.passed > 0 or slurm_says)


def violations(case: Case) -> list[str]:
    """Everything that must not be, a sentence each."""
    found = []
    if twice(case):
        rows = ", ".join(f"{each.generation} on {each.host} {each.first:.1f}-{each.last:.1f}" for each in case.starts)
        found.append(f"its code started too often, or at the same time: {rows}")
    if not case.starts and not case.cancelled and not killed(case):
        found.append("its code was never started")
    if case.told is not None and case.starts and case.starts[-1].last > case.told + MERCY:
        found.append(f"its code went on for {case.starts[-1].last - case.told:.0f} s after it was cancelled")
    for status in case.statuses:
        found += _told_wrong(case, status)
    return [f"{case.label} {case.run}: {text}" for text in dict.fromkeys(found)]


def _told_wrong(case: Case, status: Status) -> list[str]:
    """Where yurt's word of a run is not what happened."""
    said = f"{status.state} ({status.reason})"
    if not status.final:
        return [f"it is stranded as {said}"]
    complete = bool(case.starts) and case.starts[-1].ended
    if status.state == "completed":
        return [] if complete else ["yurt says completed, and its code did not come to its end"]
    if status.state == "cancelled" and "before it" in status.reason and case.starts:
        return [f"yurt says {said}, and its code was started"]
    if case.cancelled and status.state == "cancelled":
        return []
    slurm = ("lost", "node_failed", "cancelled") if case.starts else ("lost", "node_failed", "cancelled", "failed")
    if case.rough and not complete and status.state in slurm:
        return []  # that it was never started is told above
    return [f"it ended as {said}"]
