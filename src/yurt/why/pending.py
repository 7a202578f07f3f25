"""What a pending run waits for, from Slurm's reason and the queue of its site. Pure."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from yurt.model.live import Live, LiveJob
from yurt.model.run import Run, Status


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """What a run in the queue waits for."""

    native: str = ""
    """Slurm's reason."""
    sentence: str
    """The reason in words."""
    advice: str = ""
    """What to do about it."""
    job: str = ""
    partition: str = ""
    place: int | None = None
    """Its place in the queue of its partition: 1 is next; null if unknown."""
    starts_at: float | None = None
    """When Slurm expects to start it; null if it does not say."""
    waited: float | None = None
    """Seconds since it was submitted."""


def pending(run: Run, status: Status, live: Live | None, now: float) -> Pending:
    """Return what a run waits for. `live`: the queue of its site; None if that is unknown."""
    job = _job(status.job, live)
    native = job.reason if job is not None and job.reason else _reason(status.native)
    help_ = advice(native)
    return Pending(
        native=native,
        sentence=_without(status.reason, help_) or "waiting in the queue",
        advice=help_.replace("RUN", run.id),
        job=status.job,
        partition=job.partition if job is not None else "",
        place=job.place if job is not None else None,
        starts_at=job.starts_at if job is not None else None,
        waited=now - status.submitted if status.submitted is not None else None,
    )


def advice(native: str) -> str:
    """Return what to do about a reason of Slurm: that of the longest name with which it begins."""
    plain = native.split(",", maxsplit=1)[0].strip("()")
    return next((text for name, text in _advice() if plain.startswith(name)), "")


def _without(reason: str, known: str) -> str:
    """Return a reason without the advice at its end, if that is known anyway."""
    what, _semicolon, tail = reason.partition("; ")
    return what if tail and known.startswith(tail.rstrip("`")) else reason


@cache
def _advice() -> list[tuple[str, str]]:
    text = (Path(__file__).parent / "pending.toml").read_text(encoding="utf-8")
    return sorted(tomllib.loads(text)["advice"].items(), key=lambda each: -len(each[0]))


def _reason(native: str) -> str:
    """Return the reason in a native state such as `PENDING (Priority)` or `PENDING Priority`."""
    return native.partition(" ")[2].strip("()")


def _job(number: str, live: Live | None) -> LiveJob | None:
    if live is None or not number:
        return None
    wanted = number.partition("_")[0]
    return next((each for each in live.queue.mine if each.job.partition("_")[0] == wanted), None)
