"""What makes a request wait, from the state of its site. Pure."""

from __future__ import annotations

import re

from yurt.model.live import Live, LivePartition
from yurt.model.run import Resources
from yurt.model.where import SOON


def waits_for(live: Live, partition: LivePartition | None, resources: Resources, seconds: float | None) -> str:
    """Return what a request waits for; empty if it starts soon. `seconds`: its expected wait, None if unknown."""
    if seconds is not None and seconds <= SOON:
        return ""
    nodes = live.nodes if partition is None else partition.nodes
    parts = _reservations(live, resources, seconds)
    if resources.gpus:
        kinds = [each for each in nodes.gpus if resources.gpu_type in (None, each.type)]
        free, name = sum(each.free for each in kinds), resources.gpu_type or "GPU"
        if free < resources.gpus:
            total = sum(each.total for each in kinds)
            parts.append(f"{free or 'none'} of {total} {name if total == 1 or resources.gpu_type else 'GPUs'} free")
    least = re.match(r"\d+", resources.nodes or "")
    needed = (resources.cpus or 1) * max(resources.ntasks or 1, int(least[0]) if least else 1)
    if nodes.free_cpus < needed:
        parts.append(f"{nodes.free_cpus or 'none'} of {nodes.cpus} CPUs free")
    if resources.memory_mb and nodes.free_memory_mb is not None and nodes.free_memory_mb < resources.memory_mb:
        parts.append("too little memory free")
    pending = live.queue.pending if partition is None else partition.pending
    if pending:
        parts.append(f"{pending} pending job{'' if pending == 1 else 's'}")
    guess = "no node has enough free" if seconds is not None else "the site's answer has no time that can be read"
    return ", ".join(parts) or guess


def _reservations(live: Live, resources: Resources, seconds: float | None) -> list[str]:
    """Return reservations for others that are over when it starts, and would begin before it ended."""
    if seconds is None:
        return []
    start, length = live.at + seconds, (resources.minutes or 0) * 60
    found = []
    for each in live.reservations:
        if each.starts_at is None or each.ends_at is None or (each.usable and not each.maintenance):
            continue
        if each.starts_at < live.at + max(length, 1) and live.at < each.ends_at <= start + SOON:
            found.append(f"{'maintenance' if each.maintenance else 'reservation'} '{each.name}'")
    return found
