"""The loop of the agent: how long it pauses, and what ends a pause."""

from __future__ import annotations

import threading
import time

import pytest

from yurt.agent import loop
from yurt.agent.loop import Done, Loop


class Clock:
    """A clock that a pause moves forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "time", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.now += max(seconds, 0.001)
        return False


def pauses(
    monkeypatch: pytest.MonkeyPatch, rounds: list[Done], operations: dict[str, int] | None = None
) -> list[float]:
    """Return how long the loop pauses after each round."""
    clock, found, left = Clock(monkeypatch), list[float](), [*rounds]

    def on_round(_done: Done, following: float) -> None:
        found.append(following - clock.now)
        if not left:
            made.stop()

    made = Loop(
        lambda: left.pop(0), interval=30, wanted=lambda: 0, operations=lambda: operations or {}, on_round=on_round
    )
    monkeypatch.setattr(made.stopping, "wait", clock.wait)
    made.run()
    return found


def test_pauses_grow_while_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = Done(text="")
    assert pauses(monkeypatch, [idle] * 7) == [60, 120, 240, 480, 600, 600, 600]


def test_pauses_stay_short_while_runs_are_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    same, changed = Done(text="", unfinished=True), Done(text="", unfinished=True, changed=True)
    assert pauses(monkeypatch, [changed, same, same, same, changed]) == [30, 60, 120, 120, 30]


def test_a_sync_that_is_due_ends_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pauses(monkeypatch, [Done(text="", due=1007.0)]) == [7]


def test_over_the_budget_it_pauses_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Done(text="", changed=True)
    assert pauses(monkeypatch, [busy], {"alpha": loop.BUDGET - 1}) == [30]
    assert pauses(monkeypatch, [busy], {"alpha": loop.BUDGET}) == [60]


def test_work_of_another_process_ends_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOK", 0.01)
    wanted, rounds = [0], threading.Semaphore(0)
    made = Loop(
        lambda: Done(text=""), interval=1000, wanted=lambda: wanted[0], on_round=lambda _done, _next: rounds.release()
    )
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    assert rounds.acquire(timeout=60)
    assert not rounds.acquire(timeout=0.1)
    wanted[0] = 1
    assert rounds.acquire(timeout=60)
    made.stop()
    thread.join(60)
    assert not thread.is_alive()
