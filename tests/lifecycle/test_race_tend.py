"""A race is over when it is known who held its claim, and its claims are removed only then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tests.store.test_saved import renewed
from yurt.backends.answers import LostStart
from yurt.backends.slurm.states import UNANSWERED
from yurt.contexts import connect, folders
from yurt.errors import RefusedError, UnreachableError
from yurt.lifecycle.cancel import cancel
from yurt.lifecycle.outbox import lost_start
from yurt.lifecycle.race import retry_plans
from yurt.lifecycle.races import again, candidates, tend
from yurt.model import ids
from yurt.model.progress import unwatched
from yurt.model.run import Plan, Race, RestartPolicy, Run, RunRef, Status
from yurt.store import Store
from yurt.testing.pod_claims import PodClaims

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
        self.lost: LostStart = "over"

    def end_lost(self, folder: str, start: int, lease: int) -> LostStart:
        return self.lost if folder and start == 2 and lease else "keeps"

    def give_up(self, folder: str, item: int, candidate: str, who: str) -> bool:
        if not self.up:
            raise UnreachableError("alpha does not respond", code="not-responding")
        return super().give_up(folder, item, candidate, who)

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
    monkeypatch.setattr(again, "send", lambda _store, _contexts, _watch: candidates.Sent())
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
    assert candidates.send(store, [], unwatched) == candidates.Sent()


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


def test_what_a_job_waits_for_on_its_node(store: Store, sites: Sites) -> None:
    def reason() -> str:
        tend.tend_one(store, "r")
        entry = store.get("r")
        assert entry is not None and entry.status.state == "starting"
        return entry.status.reason

    assert reason() == "its job on alpha and beta asks who was first"
    store.change(["a"], lambda _run, _status: Status(state="queued", attempts=1))
    assert reason() == "its job on beta asks who was first"
    sites.up = False
    assert reason() == "its job on beta asks who was first; alpha, which decides, does not respond"


def states(store: Store) -> list[tuple[str, str, str]]:
    return [(each.run.context, each.run.retry_of, each.status.state) for each in store.several(store.candidates("r"))]


ONCE = RestartPolicy(retries=1)


def fail(store: Store, sites: Sites, end_lost: LostStart = "over", policy: RestartPolicy = ONCE) -> bool:
    """Let the node of b fail, which has won; return whether b leaves its next start to the others."""
    sites.claim(RACE.folder, 0, "b")
    sites.lost = end_lost
    store.change(["a"], lambda _run, _status: LOST)
    store.change(["b"], lambda _run, _status: Status(state="waiting", reason="its node failed", start=2, attempts=1))
    store.note_holders("r", {0: "b"})
    lost = plan("b", "beta")
    lost = msgspec.structs.replace(lost, run=msgspec.structs.replace(lost.run, restart_policy=policy))
    store.settle(lost)
    return lost_start.leaves(store, lost, sites)


def test_a_race_goes_on_without_a_winner_that_lost_its_node(store: Store, sites: Sites) -> None:
    assert fail(store, sites)
    tend.tend_one(store, "r")
    first = [("alpha", "", "cancelled"), ("beta", "", "node_failed")]
    assert states(store) == [*first, ("alpha", "a", "waiting"), ("beta", "b", "waiting")]
    assert state(store) == ("waiting", "alpha", ["r"]) and store.holders("r") == {}
    assert sites.holders(RACE.folder) == {}, "its claim has ended"
    new = [store.plan(name) for name in store.candidates("r")[2:]]
    assert [each is not None and each.run.restart_policy.retries for each in new] == [0, 0], "it was the only retry"
    tend.tend_one(store, "r")
    assert len(states(store)) == 4, "once"
    sites.claim(RACE.folder, 0, store.candidates("r")[2])
    store.change([store.candidates("r")[3]], lambda _run, _status: LOST)
    store.change([store.candidates("r")[2]], lambda _run, _status: DONE)
    tend.tend_one(store, "r")
    assert state(store) == ("completed", "alpha", [])


@pytest.mark.parametrize(
    "policy",
    [RestartPolicy(), RestartPolicy(retries=1, max_requeues=1), RestartPolicy(retries=1, retry_errors=True)],
)
def test_a_winner_that_is_restarted_on_its_site(store: Store, sites: Sites, policy: RestartPolicy) -> None:
    assert not fail(store, sites, policy=policy)


def test_a_winner_with_checkpoints_is_restarted_on_its_site(store: Store, sites: Sites) -> None:
    assert not fail(store, sites, "keeps")


def test_a_lost_start_may_still_be_running(store: Store, sites: Sites) -> None:
    assert fail(store, sites, "wait")
    tend.tend_one(store, "r")
    entry = store.get("r")
    assert entry is not None and (entry.status.state, entry.status.reason) == ("waiting", lost_start.WAITS)
    assert len(states(store)) == 2 and sites.holders(RACE.folder) == {0: "b"}


def test_a_candidate_that_is_still_being_withdrawn_takes_no_part_in_the_next_round(store: Store, sites: Sites) -> None:
    fail(store, sites)
    store.change(["a", "b"], lambda _run, _status: Status(state="waiting", start=2, attempts=1))
    lost = store.plan("b")
    assert lost is not None and not lost_start.leaves(store, lost, sites)


def test_a_race_that_cannot_go_on_yet(store: Store, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "store", lambda: store)
    assert fail(store, sites)
    sites.up = False
    (warning,) = tend.tend_one(store, "r")
    assert warning == "race r does not go on yet: alpha does not respond"
    assert state(store) == ("waiting", "beta", ["r"]) and len(states(store)) == 2
    assert cancel(["r"]).data[0].state == "cancelled"
    sites.up = True
    tend.tend_one(store, "r")
    assert state(store) == ("cancelled", "beta", []) and len(states(store)) == 2


def test_a_race_survives_a_damaged_index(store: Store, sites: Sites) -> None:
    """Its candidates are on their sites, its claims on the disk of the arbiter, and the race itself only here."""
    sites.claim(RACE.folder, 0, "b")
    with renewed(store) as found:
        assert (state(found), found.candidates("r")) == (("waiting", "alpha", ["r"]), ["a", "b"])
        assert found.outbox("alpha") == ["a"] and found.outbox("beta") == ["b"], "they may never have been submitted"
        assert not found.candidates("a") and [each.run.id for each in found.newest()] == ["r"]
        tend.tend_one(found, "r")
        assert state(found) == ("starting", "beta", ["r"])
        end(found)
        tend.tend_one(found, "r")
        assert state(found) == ("completed", "beta", [])
        with renewed(found) as after:
            assert not list(after.newest()), "it is over"


def test_a_held_job_that_was_told_too_late_is_released(store: Store, sites: Sites) -> None:
    """A yurt command read its last question just before it gave its node back."""
    sites.claim(RACE.folder, 0, "b")
    store.change(["b"], lambda _run, _status: Status(state="held", native=f"PENDING ({UNANSWERED})", attempts=1))
    tend.tend_one(store, "r")
    assert sites.released == ["jobname=yurt-b"]


def test_a_held_task_that_was_told_too_late_is_released(tmp_path: Path, sites: Sites) -> None:
    """By the number of its job: an array of the sweep may have the same name."""
    name, race = ids.make_sweep(1.0, 1), msgspec.structs.replace(RACE, id=ids.make_sweep(1.0, 1))

    def swept(each: Plan, run: str) -> Plan:
        own = msgspec.structs.replace(each.run, id=run, race=name, tasks=3)
        return msgspec.structs.replace(each, run=own, race=race, sets=[{}] * 3)

    one = swept(plan("b", "beta"), ids.make_sweep(2.0, 2))
    with Store(str(tmp_path / "sweeps.db")) as index:
        index.add_race(swept(plan("r", "alpha"), name), Status(state="waiting"))
        index.add_candidates(name, [one], Status(state="running", attempts=1, submitted_tasks="0-2"))
        held = Status(state="held", native=f"PENDING ({UNANSWERED})", attempts=1, job="9_0")
        index.change_tasks(one.run.id, [0, 1], lambda _number, _status: held)
        sites.claim(RACE.folder, 1, one.run.id)
        tend.tend_one(index, name)
    assert sites.released == ["9"]
