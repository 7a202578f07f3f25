"""`failed` means every unsuccessful end, and a task is found in the attempt that has it."""

from __future__ import annotations

import pytest

from tests.user import User
from yurt.model.run import State, Status
from yurt.store import Store


@pytest.fixture
def sweep(user: User) -> str:
    """A sweep called `grid`: task 0 completed, 1 is lost, 2 failed, 3 was cancelled."""
    words = ["--name", "grid", "--grid", "n=1..4", "sh", "-c", "exit 0"]
    made: str = user.quick("--json", "run", "--hold", *words).json["data"]["run"]["id"]
    states: tuple[State, ...] = ("completed", "lost", "failed", "cancelled")
    user.quick("cancel", made)
    with Store(str(user.home / "data" / "yurt.db")) as store:
        store._db.execute("DELETE FROM tasks")
        store._db.execute("UPDATE sweeps SET over = ''")
        store.change_tasks(made, range(4), lambda number, _status: Status(state=states[number], ended=1.0))
    return made


def test_a_filter_finds_what_is_counted(user: User, sweep: str) -> None:
    rows = user.quick("show", sweep, "--cached", "--filter", "state=failed", "--json").json["data"]["rows"]
    assert [row["task"] for row in rows] == [1, 2]
    rows = user.quick("show", sweep, "--cached", "--filter", "state=lost", "--json").json["data"]["rows"]
    assert [row["task"] for row in rows] == [1]
    (row,) = user.quick("ps", "--cached", "--filter", "state=failed", "--json").json["data"]
    assert row["id"] == sweep and row["state"] == "failed"


def test_a_lost_run_has_failed(user: User) -> None:
    run = user.quick("--json", "run", "true").json["data"]["run"]["id"]
    assert user.quick("wait", run).code == 0
    with Store(str(user.home / "data" / "yurt.db")) as store:
        store.change([run], lambda _run, _status: Status(state="lost", ended=1.0))
    for state, found in (("failed", [run]), ("lost", [run]), ("timeout", [])):
        rows = user.quick("ps", "--cached", "--filter", f"state={state}", "--json").json["data"]
        assert [row["id"] for row in rows] == found


def test_a_task_of_an_older_attempt(user: User, sweep: str) -> None:
    again = user.quick("retry", "grid", "--failed", "--json").json["data"]
    assert len(again) == 1 and again[0]["run"]["tasks"] == 2
    for word in ("grid.3", f"{again[0]['run']['id']}.3"):
        assert user.quick("show", word, "--json").json["data"]["run"]["id"] == f"{sweep}.3"
        assert user.quick("why", word).code == 0
    done = user.quick("why", "grid.4")
    assert done.code == 3 and f"sweep {again[0]['run']['id']} has no task 4; its tasks are 0 to 1" in done.err
