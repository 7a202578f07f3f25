"""Warns of maintenance that begins within the time limit of a context's jobs. Pure."""

from __future__ import annotations

from yurt.model.context import Context
from yurt.model.facts import partition_of_job
from yurt.model.live import Live, Reservation
from yurt.model.resources import parse_time


def time_limit(context: Context, live: Live) -> int | None:
    """Return the minutes that a job of this context gets by default; None if they are unlimited or unknown."""
    if context.time is not None:
        try:
            return parse_time(context.time)
        except ValueError:
            return None
    partition = partition_of_job(context.partition, live)
    used = [each for each in live.partitions if each.name == partition]
    return used[0].default_minutes or used[0].max_minutes if used else None


def warnings_of(live: Live, minutes: int | None) -> list[str]:
    """Return a sentence for each maintenance that would begin before a job that starts now reaches its limit."""
    return [
        _sentence(each, each.starts_at, live.at)
        for each in live.reservations
        if each.maintenance
        and each.starts_at is not None
        and (each.ends_at is None or each.ends_at > live.at)
        and (minutes is None or each.starts_at < live.at + 60 * minutes)
    ]


def _sentence(each: Reservation, starts_at: float, now: float) -> str:
    nodes = f"{each.node_count} node{'' if each.node_count == 1 else 's'}"
    if starts_at <= now:
        return f"maintenance '{each.name}' of {nodes} is under way: no job starts on them"
    minutes = max(1, round((starts_at - now) / 60))
    ahead = f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
    rule = "before that, only jobs with a shorter --time start on them"
    return f"maintenance '{each.name}' of {nodes} begins in {ahead}: {rule}"
