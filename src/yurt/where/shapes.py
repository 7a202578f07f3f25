"""Which partitions can take a request, and which test submissions to make. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from yurt.model.facts import Facts, Partition, partition_of_job
from yurt.model.run import Resources
from yurt.model.where import MOST, Ask

SMALLER = 3
"""How many test submissions are kept for requests for less, if there are any."""

ROUND_TIMES = (12 * 60, 4 * 60, 60)
"""Time limits in minutes for which sites often have room."""

Check = Callable[[Resources], list[str]]
"""Returns why the site can never start a request."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions of a site for a request."""

    possible: list[str] = []
    """In the order in which they are asked: those that a run uses by itself first."""
    impossible: dict[str, str] = {}
    """Why each of the others cannot take it."""
    too_long: dict[str, int] = {}
    """Partitions that could take it with this shorter time limit, in minutes."""


def choices(resources: Resources, facts: Facts, check: Check, only: Sequence[str] = ()) -> Choices:
    """Return the partitions that can take a request, by the recorded facts. `only`: the user names these."""
    possible, impossible, too_long = list[str](), dict[str, str](), dict[str, int]()
    names = list(only) or [each.name for each in facts.partitions]
    for name in names:
        here = msgspec.structs.replace(resources, partition=name)
        partition = facts.partition(name)
        problems = [each.partition("; use ")[0] for each in check(here)]
        problems += _no_account(partition, resources, facts)
        if not problems:
            possible.append(name)
            continue
        impossible[name] = "; ".join(problems)
        limit = partition.max_minutes if partition is not None else None
        if limit and resources.minutes and limit < resources.minutes:
            shorter = msgspec.structs.replace(here, minutes=limit)
            if not check(shorter) and not _no_account(partition, resources, facts):
                too_long[name] = limit
    own = partition_of_job(resources.partition, facts).split(",")
    preempted = {each.name for each in facts.partitions if each.preempt}
    possible.sort(key=lambda name: (name not in own, name in preempted))
    return Choices(possible=possible, impossible=impossible, too_long=too_long)


def _no_account(partition: Partition | None, resources: Resources, facts: Facts) -> list[str]:
    """Return why none of the user's accounts may use a partition; a named account is checked elsewhere."""
    if partition is None or not partition.accounts or not facts.accounts or resources.account:
        return []
    if {each.name for each in facts.accounts} & set(partition.accounts):
        return []
    return [f"partition '{partition.name}' is only for account {' or '.join(partition.accounts)}"]


def asks(resources: Resources, found: Choices, facts: Facts) -> tuple[list[Ask], list[str]]:
    """Return the test submissions, requests for less last, and the partitions that are not asked: there is a limit."""
    smaller = shaped(resources, found, facts)
    room = MOST - min(SMALLER, len(smaller))
    whole = [Ask(partition=name) for name in found.possible[:room]]
    return [*whole, *smaller[: MOST - len(whole)]], found.possible[room:]


def shaped(resources: Resources, found: Choices, facts: Facts) -> list[Ask]:
    """Return requests for less, the most likely to help first."""
    first = found.possible[0] if found.possible else ""
    by_limit = [Ask(partition=name, minutes=limit) for name, limit in found.too_long.items()]
    if not first:
        return sorted(by_limit, key=lambda each: -(each.minutes or 0))
    partition = facts.partition(first)
    minutes = resources.minutes
    if minutes is None and partition is not None:
        minutes = partition.default_minutes or partition.max_minutes
    by_time = [Ask(partition=first, minutes=each) for each in shorter_times(minutes)]
    found_asks = sorted([*by_time, *by_limit], key=lambda each: -(each.minutes or 0))
    if resources.gpus and resources.gpus > 1:
        found_asks.insert(1, Ask(partition=first, gpus=resources.gpus // 2))
    nodes = re.match(r"\d+", resources.nodes or "")
    if nodes and int(nodes[0]) > 1:
        found_asks.insert(1, Ask(partition=first, nodes=int(nodes[0]) // 2))
    return found_asks


def shorter_times(minutes: int | None) -> list[int]:
    """Return a few shorter time limits, longest first: half, a third, and round ones."""
    if minutes is None or minutes < 2:
        return []
    found = {minutes // 2, *(each for each in ROUND_TIMES if each <= minutes // 2)}
    if len(found) < SMALLER:
        found.add(max(1, minutes // 3))
    return sorted(found, reverse=True)[:SMALLER]
