"""Nodes on which runs failed lately through no fault of their own: other runs leave them alone for some days."""

from __future__ import annotations

import time
from collections.abc import Mapping

from yurt.backends.base import Backend
from yurt.backends.slurm.states import UNLAUNCHED
from yurt.model.facts import Facts
from yurt.model.run import Asked, Status
from yurt.model.state import Sighting, unlaunched
from yurt.store import BadNode, Store

DAYS = 3

LAUNCHES = 3
"""So often at least a run that may be started again is let go after it could not be launched."""


def note(store: Store, context: str, seen: Mapping[str, Sighting], changed: Mapping[str, Status]) -> None:
    """Remember the nodes that failed under runs, and tasks, which have just changed for that reason."""
    for run, status in changed.items():
        node = seen[run].node or status.node
        failed = seen[run].record == "node_failed" or (status.state == "waiting" and unlaunched(seen[run]))
        if failed and node and not set(node) & set("[,"):  # of several it may be any
            store.note_bad_node(context, BadNode(node, time.time(), run, seen[run].reason))


def let_go(store: Store, backend: Backend, seen: Mapping[str, Sighting]) -> None:
    """Runs that may be retried, and that Slurm holds because they could not be launched, get another node."""
    for run, sighting in seen.items():
        if sighting.live != "held" or UNLAUNCHED not in sighting.native:
            continue
        entry = store.get(run)
        if entry is None or not entry.run.again or entry.status.retries >= max(entry.run.again.retries, LAUNCHES):
            continue
        backend.release(sighting.job)
        if entry.run.task is None:
            store.change([run], lambda _run, status: _tried(status))
        else:
            store.change_tasks(entry.run.sweep, [entry.run.task], lambda _number, status: _tried(status))


def _tried(status: Status) -> Status:
    import msgspec

    return msgspec.structs.replace(status, retries=status.retries + 1, reason="it could not be launched; once more")


def known(store: Store, context: str) -> list[BadNode]:
    """Nodes of a context to be left alone now, the last that failed first."""
    return store.bad_nodes(context, time.time() - DAYS * 86400)


def avoiding(store: Store, context: str, asked: Asked, facts: Facts | None) -> tuple[Asked, list[str]]:
    """What to ask for so that bad nodes are left alone, and which those are; never so many that few are left."""
    if facts is None or asked.nodelist:
        return asked, []
    partition = facts.partition(asked.partition or facts.default_partition)
    room = sum(kind.count for kind in partition.nodes) // 2 if partition is not None else 0
    given = (asked.exclude_nodes or "").split(",") if asked.exclude_nodes else []
    found = [each.node for each in known(store, context) if each.node not in given][:room]
    return asked if not found else _replace(asked, [*given, *found]), found


def _replace(asked: Asked, nodes: list[str]) -> Asked:
    import msgspec

    return msgspec.structs.replace(asked, exclude_nodes=",".join(nodes))
