"""Notices the end of runs on this machine between two refreshes. Queries no site and changes nothing in the index."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence
from pathlib import Path

from yurt.backends.kinds import kind_of
from yurt.contexts import connect
from yurt.model import layout
from yurt.store import Entry

FIRST, GROWTH, EVERY = 0.02, 1.3, 0.2
"""Seconds until the first look at the processes of runs, how the pause grows, and the longest one: most runs that end
soon end at once."""

SHARE = 20
"""A look that takes long is repeated less often: looking takes at most this fraction of the time."""

WATCHED = 32
"""How many processes are watched for their end; those of more runs are only looked at."""


class LocalEnds:
    """The ends of some runs, tasks and sweeps. Those on other machines are ignored."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._runs = [entry.run for entry in entries if kind_of(entry.run.context_type).here]
        self._all_here = len(self._runs) == len(entries)
        self._over = self._without_process()
        self._pause = FIRST

    @property
    def contexts(self) -> list[str]:
        return sorted({run.context for run in self._runs})

    @property
    def all_alive(self) -> bool:
        """Whether all are on this machine and none had ended at the last look."""
        return self._all_here and not self._over

    def sleep(self, seconds: float) -> bool:
        """Sleep, but return True as soon as a run has ended since the last look, which `__init__` and this make.

        A run that had ended or had no process before that look does not count: a refresh may need time to settle it.
        """
        end = time.monotonic() + seconds
        pause = self._pause
        while (left := end - time.monotonic()) > 0:
            self._doze(min(pause, left) if self._runs else left)
            if not self._runs:
                continue
            began = time.monotonic()
            before, self._over = self._over, self._without_process()
            if self._over - before:
                return True
            self._pause = min(EVERY, self._pause * GROWTH)
            pause = max(self._pause, SHARE * (time.monotonic() - began))
        return False

    def _doze(self, seconds: float) -> None:
        """Sleep, but not longer than the processes of the runs live, where the system can tell."""
        watched: list[int] = []
        try:
            for pid in self._processes[:WATCHED] if hasattr(os, "pidfd_open") else ():
                watched.append(os.pidfd_open(pid))
            poll = select.poll()
            for each in watched:
                poll.register(each, select.POLLIN)
            poll.poll(seconds * 1000)
        except ProcessLookupError:
            return  # it has just ended
        except (AttributeError, OSError):  # no such call here
            time.sleep(seconds)
        finally:
            for each in watched:
                os.close(each)

    def _without_process(self) -> set[str]:
        """Return the runs that have finished or have no process. A task has that of its sweep before it starts."""
        alive = connect.slots() if self._runs else {}
        self._processes = [alive[run.id] for run in self._runs if run.id in alive]
        return {
            run.id for run in self._runs if (run.id not in alive and run.sweep not in alive) or _has_ended(run.folder)
        }


def _has_ended(folder: str) -> bool:
    return any(Path(folder, name).exists() for name in layout.written(layout.EXIT))
