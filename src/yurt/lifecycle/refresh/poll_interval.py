"""How often yurt polls the sites of unfinished runs while it waits for them: less often, the less changes.

`wait`, whatever waits for a start, calls from Python and `ps --watch` follow these rules. The clocks `first_refresh`
and `last_refresh` set the first and the longest interval; see yurt.clocks. The agent has its own interval.
"""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends.kinds import kind_of
from yurt.clocks import clocks
from yurt.config import contexts, facts

GROWTH = 1.3
"""How much longer each interval is than the one before."""

LAG = 0.05
"""How late a wait may end, as a fraction of the age of a run."""

THIS_MACHINE = 0.02, 2.0
"""The first and the longest interval of calls on this machine in seconds: they are short, and need no connection."""

WATCHING = 2.0, 30.0
"""The first and the longest interval of `ps --watch` in seconds: a person reads the table."""

WATCHING_GROWTH = 1.5


def bounds(context_type: str) -> tuple[float, float]:
    """Return the first and the longest interval for calls on a context of this type, in seconds."""
    return THIS_MACHINE if kind_of(context_type).here else (clocks().first_refresh, clocks().last_refresh)


def longest_pause(names: Sequence[str]) -> float:
    """Return the longest interval between two refreshes of these contexts, in seconds.

    Without accounting, Slurm lists a finished job only for MinJobAge seconds: look at least twice in that time.
    """
    existing = contexts.load(contexts.default_file()).contexts
    found = [facts.load(existing[name]) for name in names if name in existing]
    ages = [each.min_job_age for each in found if each is not None and each.slurm_version and not each.accounting]
    return min([clocks().last_refresh, *(max(1.0, age / 2) for age in ages)])


def next_pause(pause: float, age: float, longest: float) -> float:
    """Return the pause after the next refresh. `age`: seconds since the oldest unfinished run was created.

    A wait for a run on another machine ends at most 1 s after a run of up to 20 s, at most 5 % of the run's age after a
    longer one, and at most `longest` (15 s by default) after any run. The first five minutes of a run cost about 75
    refreshes, every further hour 240. For runs on this machine, see local_ends.py.
    """
    return min(pause * GROWTH, max(1.0, age * LAG), longest)


def next_pause_of_watch(pause: float, *, changed: bool) -> float:
    """Return the next pause of `ps --watch`."""
    first, longest = WATCHING
    return first if changed else min(pause * WATCHING_GROWTH, longest)
