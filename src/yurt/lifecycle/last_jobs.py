"""Waits for the last moments of the jobs of finished runs: a scheduler lists a job for a moment after its run ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from yurt.model.progress import Event, Watch
from yurt.model.state import Observation

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between the queries. A node that does not answer keeps its jobs for much longer; then the run is kept."""


def observe_until_left(
    query: Callable[[], Mapping[str, Observation]],
    finished: Callable[[], Collection[str]],
    watch: Watch,
) -> Mapping[str, Observation]:
    """Query until no job of a finished run is running, for a few seconds at most. Returns the last observations."""
    seen = query()
    for pause in PAUSES:
        ending = [run for run in finished() if run in seen and seen[run].live == "running"]
        if not ending:
            break
        watch(Event(f"waiting until {'1 job has' if len(ending) == 1 else f'{len(ending)} jobs have'} left the queue"))
        time.sleep(pause)
        seen = query()
    return seen
