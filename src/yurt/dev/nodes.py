"""Chooses the node of a dev node from the state of a site. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from yurt.model.live import LiveNode
from yurt.model.run import Resources
from yurt.model.workspace import Version
from yurt.store import Entry

STARTS = ("idle", "mixed")
"""States of nodes on which a job can start now."""


def chosen(
    nodes: Sequence[LiveNode],
    wanted: Resources,
    *,
    partition: str,
    last: str = "",
    avoid: Collection[str] = (),
    failed: Collection[str] = (),
) -> str:
    """Return the node to request: `last` if the resources are free there, else the least used one where they are.

    Empty if they are free nowhere, or if only the scheduler can choose: for several nodes, or nodes that are named
    by the request. `partition` is that of the request, or the default one. `avoid`: nodes on which it could not start.
    `failed`: nodes that failed under runs; `last` is taken although it did, as it may have unsaved changes.
    """
    if wanted.nodelist or wanted.exclude_nodes or (wanted.nodes or "1") != "1" or (wanted.ntasks or 1) > 1:
        return ""
    partitions = set(partition.split(","))
    free = [each for each in nodes if each.name not in avoid and partitions & {*each.partitions} and fits(each, wanted)]
    if any(each.name == last for each in free):
        return last
    sound = [each for each in free if each.name not in failed]
    return min(sound, key=_use).name if sound else ""


def with_copy(nodes: Sequence[LiveNode], newest: Version | None, last: Entry | None) -> str:
    """Return the node whose disk has the newest files of a workspace: that of the last run, which may have unsaved
    changes, unless a version was made since, by a run of another machine. Empty if that is unknown.
    """
    if newest is not None and (last is None or newest.time > last.run.created):
        host = newest.host.partition(".")[0]
        found = next((each.name for each in nodes if each.name.partition(".")[0] == host), "")
        if found:
            return found
    return "" if last is None else last.status.node


def at_most_half(nodes: Sequence[LiveNode], partition: str, reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the first of these nodes: no more than half of the partition, so that the job can start somewhere."""
    partitions = set(partition.split(","))
    room = sum(1 for each in nodes if partitions & {*each.partitions}) // 2
    return dict(list(reasons.items())[:room])


def fits(node: LiveNode, wanted: Resources) -> bool:
    """Whether a job with these resources can start on a node now."""
    if node.state not in STARTS or node.free_cpus < (wanted.cpus or 1):
        return False
    if wanted.memory_mb == 0:  # all memory of the node
        return node.free_memory_mb == node.memory_mb
    if node.free_memory_mb < (wanted.memory_mb or 1):
        return False
    kinds = [each for each in node.gpus if wanted.gpu_type in (None, each.type)]
    return max((each.free for each in kinds), default=0) >= (wanted.gpus or 0)


def _use(node: LiveNode) -> tuple[float, float, float, list[tuple[int, str]]]:
    """Return how much of a node is used, for a comparison: by jobs, then by the load, then by its name."""
    total, free = sum(each.total for each in node.gpus), sum(each.free for each in node.gpus)
    busy_gpus = (total - free) / total if total else 0.0
    busy_cpus = (node.cpus - node.free_cpus) / max(1, node.cpus)
    busy_memory = (node.memory_mb - node.free_memory_mb) / max(1, node.memory_mb)
    by_name = [(int(number or 0), text) for number, text in re.findall(r"(\d+)|(\D+)", node.name)]
    busy = max(busy_gpus, busy_cpus, busy_memory)
    # A node with GPUs is left to those who need them, unless they are requested: `fits` has then excluded the others.
    return busy, float(total), (node.load or 0.0) / max(1, node.cpus), by_name
