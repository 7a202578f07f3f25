"""Compares the ledger of each run with the status that yurt recorded. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tests.campaign.ledger import Start, overlaps
from yurt.model.run import Status

GRACE = 10.0
"""Seconds in which a cancelled job must end: Slurm kills it five seconds after the first signal."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its status in each client's index, the starts of its code, and its jobs on the site."""

    run: str
    label: str
    statuses: list[Status]
    starts: list[Start]
    restarts: int = 0
    cancelled: bool = False
    """Whether the user cancelled it."""
    cancelled_at: float | None = None
    """Time at which the site had received the cancellation."""
    near_crash: bool = False
    """Whether the controller crashed shortly before or after the run was created."""
    called: int = 0
    """Number of sbatch calls for it."""
    begun: int = 0
    """Number of jobs of it that Slurm started."""
    passed: int = 0
    """Number of those that passed the gate."""

    @property
    def fault(self) -> str:
        return self.label.partition("-")[0]

    @property
    def slurm_may_kill(self) -> bool:
        """Whether Slurm itself may have killed its job, at the gate or later."""
        return self.near_crash or self.fault in ("crash", "node")


class Count(msgspec.Struct):
    """One row of the table."""

    runs: int = 0
    submissions: int = 0
    refused: int = 0
    once: int = 0
    twice: int = 0
    never: int = 0
    cancelled: int = 0
    """Never started because the user cancelled them."""
    killed: int = 0
    """Never started because Slurm killed their job."""
    restarted: int = 0
    """Started again, as allowed, after the first start had finished. Included in `once`."""
    stranded: int = 0


def count(cases: Sequence[Case]) -> dict[str, Count]:
    """Return the table, by fault."""
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
            row.restarted += len(case.starts) > 1
        elif case.cancelled:
            row.cancelled += 1
        elif killed(case):
            row.killed += 1
        else:
            row.never += 1
    return table


def twice(case: Case) -> bool:
    """Return whether its code was started more often than allowed, or in two places at the same time."""
    generations = [start.generation for start in case.starts]
    return (
        len(generations) > case.restarts + 1 or len(set(generations)) < len(generations) or bool(overlaps(case.starts))
    )


def killed(case: Case) -> bool:
    """Return whether Slurm itself killed the job before its code started, and its state shows that.

    After a crash Slurm reuses job ids and may end the new job because of a message about the old one.
    """
    slurm_says = all(status.native.startswith(("CANCELLED", "FAILED")) for status in case.statuses)
    return not case.starts and not case.cancelled and case.slurm_may_kill and (case.passed > 0 or slurm_says)


def violations(case: Case) -> list[str]:
    """Return all violations, one sentence each."""
    found = []
    if twice(case):
        rows = ", ".join(f"{each.generation} on {each.host} {each.first:.1f}-{each.last:.1f}" for each in case.starts)
        found.append(f"its code was started too often, or twice at the same time: {rows}")
    if not case.starts and not case.cancelled and not killed(case):
        found.append("its code was never started")
    if case.cancelled_at is not None and case.starts and case.starts[-1].last > case.cancelled_at + GRACE:
        found.append(f"its code ran for {case.starts[-1].last - case.cancelled_at:.0f} s after it was cancelled")
    for status in case.statuses:
        found += _wrong_status(case, status)
    return [f"{case.label} {case.run}: {text}" for text in dict.fromkeys(found)]


def _wrong_status(case: Case, status: Status) -> list[str]:
    """Return how yurt's status of a run differs from what happened."""
    state = f"{status.state} ({status.reason})"
    if not status.final:
        return [f"it is stranded as {state}"]
    complete = bool(case.starts) and case.starts[-1].ended
    if status.state == "completed":
        return [] if complete else ["its state is completed, but its code did not finish"]
    if status.state == "cancelled" and "before it" in status.reason and case.starts:
        return [f"its state is {state}, but its code was started"]
    if case.cancelled and status.state == "cancelled":
        return []
    slurm = ("lost", "node_failed", "cancelled") if case.starts else ("lost", "node_failed", "cancelled", "failed")
    if case.slurm_may_kill and not complete and status.state in slurm:
        return []  # `violations` reports runs that were never started
    return [f"its final state is {state}"]
