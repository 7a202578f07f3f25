"""A job that a scheduler lists for a moment after its run ended: yurt waits for it, and not for long."""

from __future__ import annotations

import pytest

from yurt.lifecycle import last_jobs
from yurt.model.progress import Event
from yurt.model.run import State
from yurt.model.state import Observation


class Queue:
    """Answers queries about the run `one` with the given states, the last one for ever."""

    def __init__(self, *states: State | None) -> None:
        self.states = list(states)
        self.queries = 0

    def __call__(self) -> dict[str, Observation]:
        self.queries += 1
        return {"one": Observation(live=self.states.pop(0) if len(self.states) > 1 else self.states[0])}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_jobs, "PAUSES", (0.0, 0.0, 0.0))


def observe(queue: Queue, *finished: str) -> tuple[State | None, list[str]]:
    events: list[str] = []

    def watch(event: Event) -> None:
        events.append(event.text)

    return last_jobs.observe_until_left(queue, lambda: finished, watch)["one"].live, events


def test_the_job_of_a_finished_run_leaves_the_queue() -> None:
    queue = Queue("running", "running", None)
    assert observe(queue, "one") == (None, ["waiting until 1 job has left the queue"] * 2)
    assert queue.queries == 3


def test_a_job_that_stays() -> None:
    queue = Queue("running")
    assert observe(queue, "one")[0] == "running"
    assert queue.queries == 4


@pytest.mark.parametrize("live", [None, "queued", "held"])
def test_nothing_to_wait_for(live: State | None) -> None:
    queue = Queue(live)
    assert observe(queue, "one") == (live, [])
    assert queue.queries == 1


def test_a_run_that_has_not_finished() -> None:
    queue = Queue("running")
    assert observe(queue) == ("running", [])
    assert queue.queries == 1
