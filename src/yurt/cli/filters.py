"""`--filter KEY=VALUE` of the verbs that take tasks of sweeps, and how these are told of when they are many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

FILTER = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of sweeps: only tasks with this state, parameter or metric, as in yurt show; may be repeated.",
)

FEW = 20
"""Tasks of a sweep that are told of one by one."""


def counted(states: Iterable[str]) -> str:
    """How many are in which state: 3 completed, 1 failed."""
    counts: dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def folded(runs: Sequence[str]) -> dict[str, list[int]]:
    """Runs by their place among these: one by one, but tasks of a sweep together where they are many."""
    groups: dict[str, list[int]] = {}
    for at, run in enumerate(runs):
        sweep, dot, _number = run.partition(".")
        groups.setdefault(sweep if dot else run, []).append(at)
    found: dict[str, list[int]] = {}
    for name, places in groups.items():
        if len(places) > FEW:
            found[name] = places
        else:
            found |= {runs[at]: [at] for at in places}
    return found
