"""What a pending run waits for, from its status, Slurm's reason and the state of its site. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from yurt.lifecycle.causes import amounts, before_queue
from yurt.model import hostlist
from yurt.model.again import filled
from yurt.model.live import Live, LiveJob, LivePartition, NodeTrouble, Reservation
from yurt.model.pending import Awaited, Pending
from yurt.model.run import FINAL, Run, Status
from yurt.model.waiting import WaitingJob

STATES = ("queued", "held", "requeued", *before_queue.STATES)
"""States of a run that waits for something."""

MOST = 8
"""Nodes that are named."""

ABOUT_NODES = (
    "ReqNodeNotAvail",
    "Nodes required for job are",
    "NodeDown",
    "Resources",
    "BadConstraints",
    "PartitionConfig",
    "PartitionDown",
)
"""Reasons that nodes that are down or drained can explain."""


PER_JOB = re.compile(r"Per(?:Job|Node)(?:Limit)?$")
"""The end of the names of limits that a job alone exceeds."""


def pending(
    run: Run,
    status: Status,
    live: Live | None,
    now: float,
    *,
    number: str = "",
    details: WaitingJob | None = None,
    after: Sequence[Awaited] = (),
) -> Pending:
    """Return what a run waits for. `live`: the state of its site; None if that is unknown. `details`: of its job, which
    has this number; that of a task is the job of its sweep."""
    if status.state in before_queue.STATES or status.building or status.cancel_requested:
        return Pending(
            sentence=before_queue.sentence(status),
            advice=before_queue.advice(run, status),
            after=list(after),
            job=status.job,
            waited=_since(status, now),
        )
    if never := next((each for each in after if _never_completes(each)), None):
        return Pending(
            sentence=f"it will not run, because run {never.run}, which it follows, did not complete: {never.state}",
            advice=filled(NEVER, run).replace("FIRST", never.run),
            after=list(after),
            job=status.job,
            waited=_since(status, now),
        )
    job = _job(status.job or number, run.id, live)
    native = _native(run, status, job, details)
    help_ = advice(native) if run.context_type == "slurm" else LOCAL_ADVICE
    if run.race == run.id:
        help_ = RACE_ADVICE if status.start == 1 else AGAIN_ADVICE
    partition = job.partition if job is not None else details.partition if details is not None else ""
    parts = _partitions(partition, live)
    return Pending(
        native=native,
        sentence=_without(_words(status, native), help_) or "waiting in the queue",
        advice=filled(help_.replace("yurt release RUN", f"yurt release {run.sweep or run.id}"), run),
        limits=[amounts.words(each, details) for each in details.limits] if details is not None else [],
        after=list(after),
        job=status.job,
        partition=partition,
        place=job.place if job is not None else None,
        yours_ahead=_yours(job, live),
        free_cpus=sum(each.nodes.free_cpus for each in parts) if parts else _here(run, live),
        free_gpus=_gpus(parts),
        starts_at=job.starts_at if job is not None else None,
        waited=_since(status, now),
        nodes=_nodes(native, partition, live, details),
        maintenance=_maintenance(native, live),
        admin_comment=details.admin_comment if details is not None else "",
        system_comment=details.system_comment if details is not None else "",
    )


NEVER = "cancel it with `yurt cancel RUN`, repeat the other one with `yurt retry FIRST`, and submit it again after that"


def _never_completes(first: Awaited) -> bool:
    return not first.ended and first.state in FINAL and first.state != "completed"


LOCAL_ADVICE = "it starts when runs before it have finished: `yurt cluster local` lists them"

RACE_ADVICE = "it runs where it starts first, and is cancelled elsewhere; `yurt cluster` shows what is free"

AGAIN_ADVICE = (
    "it is restarted where its checkpoints are; to race again without them, `yurt cancel RUN`, then `yurt retry RUN`"
)


def advice(native: str) -> str:
    """Return what to do about a reason of Slurm: that of the longest name with which it begins."""
    plain = native.split(",", maxsplit=1)[0].strip("()")
    found = next((name for name in _advice() if plain.startswith(name)), "")
    if PER_JOB.search(plain) and not PER_JOB.search(found) and "Wall" not in found:
        found = "PerJob"
    return _advice().get(found, "")


def _native(run: Run, status: Status, job: LiveJob | None, details: WaitingJob | None) -> str:
    if run.context_type != "slurm":
        return ""
    known = _reason(status.native)
    seen = (job.reason if job is not None else "") or (details.reason if details is not None else "")
    # The poll of runs tells apart a run that waits for a home sync from one that the user holds.
    return known if seen and known.startswith(f"{seen} ") else seen or known


def _words(status: Status, native: str) -> str:
    """Return the reason in words: that of the last refresh, unless the site reports another one now."""
    if not native or native == _reason(status.native):
        return status.reason
    from yurt.backends.slurm.states import describe

    return describe("PENDING", native)


def _without(reason: str, known: str) -> str:
    """Return a reason without the advice at its end, if that is known anyway."""
    what, _semicolon, tail = reason.partition("; ")
    return what if tail and known.startswith(tail.rstrip("`")) else reason


@cache
def _advice() -> dict[str, str]:
    """Return the advice by name, the longest name first."""
    import tomllib  # takes as long to import as the rest of the module

    text = (Path(__file__).parent / "pending.toml").read_text(encoding="utf-8")
    return dict(sorted(tomllib.loads(text)["advice"].items(), key=lambda each: -len(each[0])))


def _reason(native: str) -> str:
    """Return the reason in a native state such as `PENDING (Priority)` or `PENDING Priority`."""
    return native.partition(" ")[2].strip("()")


def _since(status: Status, now: float) -> float | None:
    return now - status.submitted if status.submitted is not None else None


def _job(number: str, run: str, live: Live | None) -> LiveJob | None:
    if live is None:
        return None
    wanted = number.partition("_")[0]
    waiting = [each for each in live.queue.mine if each.state == "pending"]
    mine = [each for each in waiting if each.run == run or (wanted and each.job.partition("_")[0] == wanted)]
    return next((each for each in mine if each.run == run or each.job == number), mine[0] if mine else None)


def _yours(job: LiveJob | None, live: Live | None) -> int | None:
    if job is None or job.place is None or live is None or live.queue.mine_total > len(live.queue.mine):
        return None
    own = set(job.partition.split(","))
    return sum(
        each.tasks
        for each in live.queue.mine
        if each.place is not None and each.place < job.place and own & set(each.partition.split(","))
    )


def _partitions(names: str, live: Live | None) -> list[LivePartition]:
    wanted = names.split(",") if names else []
    return [each for each in live.partitions if each.name in wanted] if live is not None else []


def _here(run: Run, live: Live | None) -> int | None:
    """Return the free CPUs of this machine, which has no partitions."""
    return live.nodes.free_cpus if live is not None and run.context_type == "local" else None


def _gpus(parts: Sequence[LivePartition]) -> int | None:
    gpus = [gpu for each in parts for gpu in each.nodes.gpus]
    return sum(each.free for each in gpus) if gpus else None


def _nodes(native: str, partition: str, live: Live | None, details: WaitingJob | None) -> list[NodeTrouble]:
    """Return the nodes that are down or drained and may hold up a job: those that it names, else of its partition."""
    if live is None or not native.startswith(ABOUT_NODES):
        return []
    named = details.nodes if details is not None else ""
    unavailable = native.partition("UnavailableNodes:")[2].strip(" )")
    listed = ",".join(each for each in (named, unavailable) if each)
    found = [each for each in live.troubles if listed and hostlist.contains(listed, each.node)]
    own = set(partition.split(","))
    return (found or [each for each in live.troubles if not listed and own & set(each.partitions)])[:MOST]


def _maintenance(native: str, live: Live | None) -> list[Reservation]:
    if live is None or not native.startswith(("ReqNodeNotAvail", "Resources", "Reservation")):
        return []
    return [each for each in live.reservations if each.maintenance][:MOST]
