"""Chooses the node of a dev node from the state of a site. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from yurt.model.live import LiveNode
from yurt.model.run import Resources

STARTS = ("idle", "mixed")
"""States of nodes on which a job can start now."""


def chosen(
    nodes: Sequence[LiveNode], wanted: Resources, *, partition: str, last: str = "", avoid: Collection[str] = ()
) -> str:
    """Return the node to request: `last` if the resources are free there, else the least used one where they are.

    Empty if they are free nowhere, or if only the scheduler can choose: for several nodes, or nodes that are named
    by the request. `partition` is that of the request, or the default one. `avoid`: nodes that failed recently.
    """
    if wanted.nodelist or wanted.exclude_nodes or (wanted.nodes or "1") != "1" or (wanted.ntasks or 1) > 1:
        return ""
    partitions = set(partition.split(","))
    free = [each for each in nodes if each.name not in avoid and partitions & {*each.partitions} and fits(each, wanted)]
    if any(each.name == last for each in free):
        return last
    return min(free, key=_use).name if free else ""


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
