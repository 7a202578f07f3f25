"""The loop of the agent: a round, a pause that grows while nothing happens, another round."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

import msgspec

LONGEST = 600.0
"""The longest pause between two rounds, in seconds."""

LOOK = 1.0
"""How often a pause looks whether something has happened, in seconds."""

BUDGET = 20
"""Commands per minute and context, by default. The agent pauses for a minute when it has sent so many."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a round did."""

    text: str
    """In one line, for people."""
    problems: list[str] = []
    changed: bool = False
    """Whether something happened, so that the next round should not wait longer."""
    unfinished: bool = False
    """Whether there are unfinished runs."""
    due: float | None = None
    """When something is to be done in any case."""


class Loop:
    """Repeats rounds until it is stopped."""

    def __init__(
        self,
        work: Callable[[], Done],
        *,
        interval: float,
        budget: int = BUDGET,
        wanted: Callable[[], object],
        operations: Callable[[], dict[str, int]] = dict,
        on_round: Callable[[Done, float], None] = lambda _done, _next: None,
    ) -> None:
        """`wanted` returns something that differs if another process has left work to do."""
        self.work, self.interval, self.budget, self.wanted = work, interval, budget, wanted
        self.operations, self.on_round = operations, on_round
        self.stopping = Event()

    def run(self) -> None:
        """Repeat rounds until `stop`."""
        pause = self.interval
        while not self.stopping.is_set():
            done = self.work()
            pause = self.interval if done.changed else min(pause * 2, LONGEST if not done.unfinished else self.longest)
            until = time.time() + pause
            if done.due is not None:
                until = min(until, done.due)
            if any(number >= self.budget for number in self.operations().values()):
                until = max(until, time.time() + 60)
            self.on_round(done, until)
            self._pause(until)

    @property
    def longest(self) -> float:
        """The longest pause while runs are unfinished."""
        return max(self.interval, min(4 * self.interval, LONGEST))

    def stop(self) -> None:
        """Let the loop end after its current round."""
        self.stopping.set()

    def _pause(self, until: float) -> None:
        """Wait until a time, until another process has left work, or until the loop is stopped."""
        seen = self.wanted()
        while time.time() < until and not self.stopping.wait(min(LOOK, max(0.0, until - time.time()))):
            if self.wanted() != seen:
                return
