"""Races in the index: the race is shown, and its candidates are what sites are asked about."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from yurt.cli.run_facts import _candidate
from yurt.lifecycle.races import view
from yurt.model.run import Plan, Race, Run, Status
from yurt.store import Store

RACE, ALPHA, BETA = "1nfaaa0-aaaa0", "1nfaaa0-bbbb0", "1nfaaa0-cccc0"
SWEEP, FIRST, SECOND = "s1nfaaa1-aaaa0", "s1nfaaa1-bbbb0", "s1nfaaa1-cccc0"


def run(name: str, context: str, race: str, tasks: int = 0) -> Run:
    return Run(
        id=name,
        context=context,
        context_type="slurm",
        project="p-1234",
        source="/p",
        created=10.0,
        command=["true"],
        folder="" if name == race else f"/x/yurt/projects/p-1234/runs/{name}",
        name="quick",
        race=race,
        tasks=tasks,
        retry_of="1nfaaa0-zzzz0",
    )


def plan(name: str, context: str, race: str, tasks: int = 0, step: int = 1) -> Plan:
    first = tasks - 1 if step < 0 else 0
    return Plan(
        run=run(name, context, race, tasks),
        project_folder="/x/yurt/projects/p-1234",
        store="",
        words=[b"true"],
        sets=[{"n": number} for number in range(tasks)],
        race=Race(id=race, arbiter="alpha", folder=f"/x/yurt/races/{race}", first=first, step=step),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(str(tmp_path / "yurt.db"))
    found.add_race(plan(RACE, "alpha", RACE), Status(state="waiting"))
    found.add_candidates(RACE, [plan(ALPHA, "alpha", RACE), plan(BETA, "beta", RACE)], Status())
    return found


def test_a_race_alone_is_never_submitted(tmp_path: Path) -> None:
    """yurt may be killed before it has candidates."""
    found = Store(str(tmp_path / "yurt.db"))
    found.add_race(plan(RACE, "alpha", RACE), Status(state="waiting"))
    assert (found.outbox("alpha"), found.refs("alpha"), found.contexts_of_unfinished()) == ([], [], [])
    assert not found.is_in_outbox(RACE) and found.open_races() == [RACE]


def test_users_see_the_race_and_sites_its_candidates(store: Store) -> None:
    assert [entry.run.id for entry in store.newest()] == [RACE]
    assert [entry.run.id for entry in store.newest(candidates=True)] == [BETA, ALPHA]
    last = store.last()
    assert last is not None and last.run.id == RACE
    assert store.matching("1nfaaa0") == [RACE] and store.matching(BETA) == [BETA]
    assert (store.outbox("alpha"), store.outbox("beta")) == ([ALPHA], [BETA])
    assert store.candidates(RACE) == [ALPHA, BETA]
    assert store.rivals(["alpha"]) == ["beta"]
    assert store.retries("1nfaaa0-zzzz0") == [RACE]


def test_the_race_becomes_its_winner(store: Store) -> None:
    store.note_holders(RACE, {0: BETA})
    status = Status(state="completed", job="7", attempts=1, ended=20.0)
    store.set_race(msgspec.structs.replace(run(RACE, "beta", RACE), folder=run(BETA, "beta", RACE).folder), status)
    store.change([BETA], lambda _run, _status: status)
    store.change([ALPHA], lambda _run, _status: Status(state="cancelled", ended=14.0))
    lost, won = view.candidates(store, RACE)
    assert (lost.reason, lost.queued, won.won) == ("withdrawn before it was submitted", None, True)
    assert _candidate(lost, sweep=False) == "alpha: withdrawn before it was submitted"
    store.change([ALPHA], lambda _run, _status: Status(state="cancelled", job="8", submitted=10.0, ended=14.0))
    assert _candidate(view.candidates(store, RACE)[0], sweep=False) == "alpha: withdrawn after 4s in the queue"
    entry = store.get(RACE)
    assert entry is not None and (entry.run.context, entry.status) == ("beta", status)
    assert store.of_job("7") == [RACE], "its candidate has the same job"
    assert store.to_mirror("beta", 1e12) == [], "too old"
    assert [store.race_name(each) for each in (ALPHA, BETA)] == ["", RACE]
    assert store.winner_name(RACE) == BETA
    store.note_gone([BETA], 30.0)
    assert store.gone_at(RACE) == 30.0


def test_logs_are_saved_once_under_the_name_of_the_race(store: Store) -> None:
    import time

    done = Status(state="completed", attempts=1)
    store.change([BETA], lambda _run, _status: done)
    store.set_race(msgspec.structs.replace(run(RACE, "beta", RACE), folder="/x"), done)
    assert store.to_mirror("beta", time.time() + 1) == [RACE]


def test_a_removed_race_leaves_nothing(store: Store) -> None:
    store.note_holders(RACE, {0: BETA})
    store.remove(RACE)
    assert [entry.run.id for entry in store.newest(candidates=True)] == []
    assert (store.open_races(), store.holders(RACE), store.candidates(RACE)) == ([], {}, [])


def test_candidates_of_another_machine_are_shown(tmp_path: Path) -> None:
    found = Store(str(tmp_path / "yurt.db"))
    found.add_candidates(RACE, [plan(ALPHA, "alpha", RACE)], Status())
    assert [entry.run.id for entry in found.newest()] == [ALPHA]


def test_tasks_of_a_raced_sweep(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "yurt.db"))
    store.add_race(plan(SWEEP, "alpha", SWEEP, 4), Status(state="waiting"))
    store.add_candidates(SWEEP, [plan(FIRST, "alpha", SWEEP, 4), plan(SECOND, "beta", SWEEP, 4, -1)], Status())
    store.note_holders(SWEEP, {0: FIRST, 3: SECOND})
    whole = store.set_race_tasks(SWEEP, {3: Status(state="running", started=5.0)}, "0-3")
    assert whole.task_states == {"running": 1, "queued": 3}
    task = store.get(f"{SWEEP}.3")
    assert task is not None and (task.run.context, task.run.params) == ("beta", {"n": 3})
    assert task.run.folder.endswith(f"{SECOND}/tasks/0"), "it counts down"
    assert (store.race_name(f"{SECOND}.0"), store.winner_name(f"{SWEEP}.3")) == (f"{SWEEP}.3", f"{SECOND}.0")
    assert store.race_name(f"{FIRST}.3") == ""
    assert [entry.run.context for entry in store.several([f"{SWEEP}.{number}" for number in (0, 3)])] == [
        "alpha",
        "beta",
    ]
