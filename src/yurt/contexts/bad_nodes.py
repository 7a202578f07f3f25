"""Nodes that recently failed while they executed runs. Other runs avoid them for some days."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from yurt.errors import YurtError
from yurt.model.facts import Facts
from yurt.model.run import Chosen, Plan, Resources, Status
from yurt.model.state import Observation
from yurt.store import BadNode, Store

if TYPE_CHECKING:
    from yurt.backends.base import Runs

DAYS = 3

LAUNCHES = 3
"""Minimum number of launch attempts of a held run with a restart policy."""


def note(store: Store, context: str, seen: Mapping[str, Observation], changed: Mapping[str, Status]) -> None:
    """Record the nodes that failed under runs and tasks whose status just changed for that reason."""
    for run, status in changed.items():
        node = seen[run].node or status.node
        failed = seen[run].record == "node_failed" or (status.state == "waiting" and seen[run].unlaunched)
        if failed and node and not set(node) & set("[,"):  # with several nodes, it is unknown which one failed
            store.note_bad_node(context, BadNode(node, time.time(), run, seen[run].reason))


def release_held(store: Store, runs: Runs, seen: Mapping[str, Observation]) -> None:
    """Release runs with a restart policy that Slurm holds after a failed launch, so that they get another node."""
    for run, observation in seen.items():
        if observation.live != "held" or not observation.unlaunched:
            continue
        entry = store.get(run)
        if (
            entry is None
            or not entry.run.restart_policy
            or entry.status.retries >= max(entry.run.restart_policy.retries, LAUNCHES)
        ):
            continue
        with suppress(YurtError):  # the next refresh tries again
            runs.release([observation.job])
        if entry.run.task is None:
            store.change([run], lambda _run, status: _with_retry(status))
        else:
            store.change_tasks(entry.run.sweep, [entry.run.task], lambda _number, status: _with_retry(status))


def _with_retry(status: Status) -> Status:
    import msgspec

    return msgspec.structs.replace(status, retries=status.retries + 1, reason="the launch failed; retrying")


def known(store: Store, context: str) -> list[BadNode]:
    """Return the nodes of a context to avoid now, latest failure first."""
    return store.bad_nodes(context, time.time() - DAYS * 86400)


def avoiding(store: Store, context: str, resources: Resources, facts: Facts | None) -> tuple[Resources, list[str]]:
    """Return the resources with bad nodes excluded, and these nodes.

    At most half of the partition's nodes are excluded.
    """
    if facts is None or resources.nodelist:
        return resources, []
    partition = facts.partition_of(resources.partition)
    room = sum(kind.count for kind in partition.nodes) // 2 if partition is not None else 0
    given = (resources.exclude_nodes or "").split(",") if resources.exclude_nodes else []
    found = [each.node for each in known(store, context) if each.node not in given][:room]
    return resources if not found else _replace(resources, [*given, *found]), found


def _replace(resources: Resources, nodes: list[str]) -> Resources:
    import msgspec

    return msgspec.structs.replace(resources, exclude_nodes=",".join(nodes))


AVOIDED = "runs failed on it recently"
"""The source of the setting that excludes a bad node."""


def as_settings(nodes: Sequence[str]) -> list[Chosen]:
    """Return the nodes that a plan avoids, for its record."""
    return [Chosen("exclude_nodes", node, AVOIDED) for node in nodes]


def not_avoiding(plan: Plan) -> tuple[Plan, list[str]]:
    """Return the plan without the nodes that yurt itself excluded, and these nodes."""
    import msgspec

    own = [each.value for each in plan.run.settings if each.key == "exclude_nodes" and each.source == AVOIDED]
    left = [node for node in (plan.run.resources.exclude_nodes or "").split(",") if node and node not in own]
    resources = msgspec.structs.replace(plan.run.resources, exclude_nodes=",".join(left) or None)
    return msgspec.structs.replace(plan, run=msgspec.structs.replace(plan.run, resources=resources)), own
