"""`-` and `@last` mean the run that was made last, whatever the clock said; not the one before a rejected run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.store.test_runs import run
from tests.user import User
from yurt.model.run import Status
from yurt.store import Store
from yurt.store.runs import Found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "yurt.db"))


def test_after_the_clock_was_wrong(store: Store) -> None:
    future, now, past = (msgspec.structs.replace(run(n), created=at) for n, at in ((1, 9e9), (2, 2e9), (3, 1e9)))
    for each in (future, now, past):
        store.add(each, Status())
        last = store.last()
        assert last is not None and last.run.id == each.id
    store.remove(past.id)
    assert (last := store.last()) is not None and last.run.id == now.id


def test_runs_of_other_machines_count_by_their_time(store: Store) -> None:
    old, mine, new = (msgspec.structs.replace(run(n), created=at) for n, at in ((1, 1e9), (2, 2e9), (3, 3e9)))
    store.add(mine, Status())
    store.add_found([Found(old, Status(), None)])
    assert (last := store.last()) is not None and last.run.id == mine.id
    store.add_found([Found(new, Status(), None)])
    assert (last := store.last()) is not None and last.run.id == new.id


def test_without_runs(store: Store) -> None:
    assert store.last() is None and store.last(sweep=True) is None and store.last_refused() == ""


def test_after_a_rejected_run(user: User) -> None:
    first = user("--json", "run", "--wait", "true").json["data"]["run"]["id"]
    assert user("run", "--gpus", "9", "true").code == 5
    for word in ("-", "@last"):
        done = user("show", word)
        assert done.code == 3 and f"'{word}' names no run: your last run was rejected: " in done.err, done
        assert first in done.err, "the hint names the run before"
    assert user("run", "--after", "-", "true").code == 3
    second = user("--json", "run", "--wait", "true").json["data"]["run"]["id"]
    assert user("--json", "show", "-").json["data"]["run"]["id"] == second
