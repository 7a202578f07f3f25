"""A race is over when it is known who held its claim, and its claims are removed only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from yurt.backends.slurm.states import UNANSWERED
from yurt.errors import RefusedError, UnreachableError
from yurt.lifecycle.race import submit, tend
from yurt.model.progress import unwatched
from yurt.model.run import Plan, Race, Run, RunRef, Status
from yurt.sites import connect
from yurt.store import Store
from yurt.testing.pod_claims import PodClaims
from yurt.verbs.race import retry_plans

RACE = Race(id="r", arbiter="alpha", folder="/races/r")
LOST = Status(state="cancelled", reason="another candidate of its race was first", attempts=1)
DONE = Status(state="completed", attempts=1)
RUNNING = Status(state="running", attempts=1)


def plan(name: str, context: str) -> Plan:
    run = Run(
        id=name,
        context=context,
        context_type="slurm",
        project="p",
        source="/p",
        created=1.0,
        command=["true"],
        folder=f"/runs/{name}" if name != "r" else "",
        race="r",
    )
    return Plan(run=run, project_folder="/projects/p", store="", words=[b"true"], race=RACE)


class Sites(PodClaims):
    """The claims on alpha; they can be unreachable, and something can happen while they are asked."""

    up = True

    def __init__(self) -> None:
        super().__init__()
        self.released: list[str] = []

    def meanwhile(self) -> None:
        """Do what another process does."""

    def holders(self, folder: str) -> dict[int, str]:
        if not self.up:
            raise UnreachableError("alpha does not respond", code="not-responding")
        try:
            found = super().holders(folder)
        except KeyError:
            raise RefusedError("alpha: cannot use the claims of a race", code="site-refused") from None
        self.meanwhile()
        return found


class Queue:
    """The queue of both clusters; it cancels nothing."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites

    def release(self, jobs: Sequence[str]) -> None:
        self._sites.released += jobs

    def cancel_runs(self, runs: Sequence[RunRef]) -> dict[str, str]:
        raise UnreachableError(f"alpha does not cancel {len(runs)} runs now", code="not-responding")


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> Sites:
    found = Sites()
    found.open(RACE.folder)
    monkeypatch.setattr(connect, "responding_backend", lambda _name: SimpleNamespace(claims=found, runs=Queue(found)))
    return found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "yurt.db")) as index:
        index.add_race(plan("r", "alpha"), Status(state="waiting"))
        assert index.add_candidates("r", [plan("a", "alpha"), plan("b", "beta")], RUNNING)
        yield index


def end(store: Store) -> None:
    store.change(["a"], lambda _run, _status: LOST)
    store.change(["b"], lambda _run, _status: DONE)


def state(store: Store) -> tuple[str, str, list[str]]:
    entry = store.get("r")
    assert entry is not None
    return entry.status.state, entry.run.context, store.open_races()


def test_candidates_that_ended_before_anybody_looked_are_asked_for(store: Store, sites: Sites) -> None:
    sites.claim(RACE.folder, 0, "b")
    end(store)
    assert tend.tend_one(store, "r") == []
    assert state(store) == ("completed", "beta", [])


def test_a_race_is_not_over_while_its_arbiter_does_not_respond(store: Store, sites: Sites) -> None:
    sites.claim(RACE.folder, 0, "b")
    end(store)
    sites.up = False
    (warning,) = tend.tend_one(store, "r")
    assert "cannot find out who was first" in warning
    assert state(store) == ("waiting", "alpha", ["r"])
    sites.up = True
    tend.tend_one(store, "r")
    assert state(store) == ("completed", "beta", [])


def test_candidates_that_end_while_the_arbiter_is_asked_do_not_end_the_race(store: Store, sites: Sites) -> None:
    def meanwhile() -> None:
        sites.claim(RACE.folder, 0, "b")
        end(store)

    sites.meanwhile = meanwhile  # type: ignore[method-assign]
    tend.tend_one(store, "r")
    assert state(store) == ("starting", "alpha", ["r"])
    tend.tend_one(store, "r")
    assert state(store) == ("completed", "beta", [])


def test_a_candidate_that_completed_has_won_if_the_claims_are_gone(store: Store, sites: Sites) -> None:
    end(store)
    sites.close(RACE.folder)
    tend.tend_one(store, "r")
    assert state(store) == ("completed", "beta", [])


def test_a_race_that_is_cancelled_gets_no_candidates(tmp_path: Path, sites: Sites) -> None:
    with Store(str(tmp_path / "other.db")) as store:
        store.add_race(plan("r", "alpha"), Status(state="waiting"))
        store.change(["r"], lambda _run, _status: Status(state="cancelled", reason="cancelled"))
        assert not store.add_candidates("r", [plan("a", "alpha")], Status())
        assert tend.tend_one(store, "r") == []
        assert (state(store), store.candidates("r")) == (("cancelled", "alpha", []), [])
        entry = store.get("r")
        assert entry is not None
        with pytest.raises(RefusedError, match="never submitted"):
            retry_plans(store, entry, None, lambda _entry, _tasks: pytest.fail("nothing to plan"))
    with pytest.raises(RefusedError):
        sites.holders(RACE.folder)


def test_a_race_without_candidates_submits_nothing(store: Store) -> None:
    """Another process has cancelled it while it was being prepared."""
    assert submit.send(store, [], unwatched) == submit.Sent()


@pytest.mark.parametrize(
    ("winner", "state", "reason"),
    [
        (Status(state="queued", attempts=1), "starting", "beta was first"),
        (
            Status(state="unknown", reason="its node failed", native="NODE_FAIL", attempts=1),
            "unknown",
            "its node failed",
        ),
        (
            Status(state="node_failed", reason="its node failed", attempts=1),
            "node_failed",
            "its node failed on beta; race again with `yurt retry r`",
        ),
        (
            Status(state="waiting", reason="its node failed; it will be restarted", start=2, attempts=1),
            "waiting",
            "its node failed; it will be restarted",
        ),
    ],
)
def test_a_race_shows_the_failure_of_its_winner(
    store: Store, sites: Sites, winner: Status, state: str, reason: str
) -> None:
    sites.claim(RACE.folder, 0, "b")
    store.change(["b"], lambda _run, _status: winner)
    tend.tend_one(store, "r")
    entry = store.get("r")
    assert entry is not None and (entry.status.state, entry.status.reason) == (state, reason)


def test_a_held_job_that_was_told_too_late_is_released(store: Store, sites: Sites) -> None:
    """A yurt command read its last question just before it gave its node back."""
    sites.claim(RACE.folder, 0, "b")
    store.change(["b"], lambda _run, _status: Status(state="held", native=f"PENDING ({UNANSWERED})", attempts=1))
    tend.tend_one(store, "r")
    assert sites.released == ["jobname=yurt-b"]
