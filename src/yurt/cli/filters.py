"""`--filter KEY=VALUE`, which selects tasks of sweeps, and short output for many tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from yurt.cli.declare import option

FILTER = option(
    "--filter",
    "filters",
    multiple=True,
    metavar="KEY=VALUE",
    help="Select only sweep tasks whose state, parameter or metric KEY equals VALUE; repeatable.",
)

FEW = 20
"""Maximum number of tasks of a sweep that are printed one by one."""


def counted(states: Iterable[str]) -> str:
    """Return how many runs are in each state: 3 completed, 1 failed."""
    counts: dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def folded(runs: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of runs in the list by name; more than FEW tasks of a sweep are grouped under the sweep."""
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
