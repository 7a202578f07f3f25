"""Runs that are saved and not yet submitted survive a damaged index: each is also in a file beside it."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from tests.store.test_runs import plan, run
from yurt.clocks import clocks
from yurt.errors import RefusedError
from yurt.model import ids
from yurt.model.progress import on_slow
from yurt.model.run import Run, Status
from yurt.store import Found, Store
from yurt.store.connection import connect

WAITING = Status(state="waiting", reason="alpha does not respond")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "data" / "yurt.db"))


def files(store: Store) -> list[str]:
    folder = Path(store.file).parent / "saved"
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def renewed(store: Store) -> Store:
    """Move the index away, as the hint about a damaged one says, and open a new one."""
    with store:
        pass
    for each in Path(store.file).parent.glob("yurt.db*"):
        each.rename(f"{each}.damaged")
    return Store(store.file)


def sweep(number: int) -> Run:
    made = run(number)
    return msgspec.structs.replace(made, id=ids.make_sweep(1_800_000_000 + number, number * 7919), tasks=3)


def test_saved_runs_are_in_a_new_index(store: Store) -> None:
    first, second, many, sent = run(1), msgspec.structs.replace(run(2), folder=""), sweep(3), run(4)
    store.add(many, WAITING, msgspec.structs.replace(plan(many), sets=[{"n": n} for n in range(3)]))
    store.add(second, WAITING, plan(second), b"a draft")
    store.add(first, WAITING, plan(first))
    store.add(sent, Status(state="queued", job="7"), plan(sent))
    before = {each.run.id: each for each in store.newest()}
    found = renewed(store)
    assert {each.run.id: each for each in found.newest()} == {
        each: before[each] for each in (first.id, second.id, many.id)
    }
    assert found.outbox("alpha") == [first.id, second.id, many.id]
    assert found.plan(second.id) == plan(second) and found.draft(second.id) == b"a draft" and not found.draft(first.id)
    assert found.pending_tasks(many.id) == [(0, 1), (1, 1), (2, 1)] and found.last().run == many  # type: ignore[union-attr]
    assert renewed(found).outbox("alpha") == [first.id, second.id, many.id], "also the next time"


def test_a_run_has_a_file_until_it_is_submitted_or_over(store: Store) -> None:
    made = run(1)
    store.add(made, Status(state="submitting", attempts=1), plan(made))
    assert not files(store), "usually, it is submitted at once"

    def to(state: str) -> None:
        store.change([made.id], lambda _run, status: msgspec.structs.replace(status, state=state, job="7"))

    to("waiting")
    assert files(store) == [made.id]
    to("submitting")
    assert files(store) == [made.id], "the attempt may fail"
    to("queued")
    assert not files(store)
    to("waiting")
    to("cancelled")
    assert not files(store)
    to("waiting")
    store.remove(made.id)
    assert not files(store)


def test_a_sweep_has_a_file_until_some_tasks_are_submitted(store: Store) -> None:
    made = sweep(1)
    store.add(made, WAITING, msgspec.structs.replace(plan(made), sets=[{}] * 3))
    store.change_tasks(made.id, whole=lambda status: msgspec.structs.replace(status, attempts=1))
    assert files(store) == [made.id]
    store.change_tasks(made.id, whole=lambda status: msgspec.structs.replace(status, submitted_tasks="0-1"))
    assert not files(store)


def test_a_cancellation_is_not_forgotten(store: Store) -> None:
    made = run(1)
    store.add(made, WAITING, plan(made))
    store.change([made.id], lambda _run, status: msgspec.structs.replace(status, cancel_requested=True))
    assert renewed(store).cancels("alpha") == [made.id]


def test_a_cancellation_that_its_site_does_not_know_yet(store: Store) -> None:
    made, many, ended = run(1), sweep(2), run(3)
    several = msgspec.structs.replace(plan(many), sets=[{}] * 3)

    def cancelled(status: Status) -> Status:
        return msgspec.structs.replace(status, cancel_requested=True)

    for each in (made, ended):
        store.add(each, Status(state="queued", job="7"), plan(each))
        store.change([each.id], lambda _run, status: cancelled(status))
    store.add(many, Status(submitted_tasks="0-2"), several)
    store.change_tasks(many.id, whole=cancelled)
    assert files(store) == [f"{each.id}.cancel" for each in (made, ended, many)]
    store.change([ended.id], lambda _run, status: msgspec.structs.replace(status, state="cancelled"))
    assert files(store) == [f"{each.id}.cancel" for each in (made, many)]
    found = renewed(store)
    found.add_found(
        [
            Found(made, Status(state="running"), plan(made)),
            Found(many, Status(submitted_tasks="0-2"), several),
            Found(ended, Status(state="cancelled"), plan(ended)),
        ]
    )
    assert found.cancels("alpha") == [made.id, many.id]


def test_files_that_are_left_or_damaged(store: Store) -> None:
    made, gone = run(1), run(2)
    for each in (made, gone):
        store.add(each, WAITING, plan(each))
    folder = Path(store.file).parent / "saved"
    left = (folder / gone.id).read_bytes()
    store.change([gone.id], lambda _run, status: msgspec.structs.replace(status, state="cancelled"))
    (folder / gone.id).write_bytes(left)  # a process was killed between the two
    store.collect_saved()
    assert files(store) == [made.id]
    for name, content in (("other", b"{}"), ("half", left[:100]), (".aside", left), ("again", left), ("twice", left)):
        (folder / name).write_bytes(content)
    assert renewed(store).outbox("alpha") == [made.id, gone.id]


def test_an_index_that_another_program_has_locked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said after a while; a command then goes on if the lock ends, and gives up if not."""
    monkeypatch.setenv("YURT_CLOCKS", "slow=0.2 locked=0.6")
    clocks.cache_clear()
    said: list[str] = []
    on_slow(said.append)
    with store:
        pass
    other = connect(store.file)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM looks")
    with pytest.raises(RefusedError, match="another program has locked it") as caught:
        Store(store.file)
    assert caught.value.code == "index-unavailable" and "fuser" in caught.value.hint
    assert len(said) == 1 and "is locked by another program" in said[0]
    said.clear()
    monkeypatch.setenv("YURT_CLOCKS", "slow=0.2 locked=600")
    clocks.cache_clear()
    locked = threading.Event()

    def listen(text: str) -> None:
        said.append(text)
        locked.set()

    on_slow(listen)
    found: list[Store] = []
    opener = threading.Thread(target=lambda: found.append(Store(store.file)))
    opener.start()
    assert locked.wait(60)
    other.close()
    opener.join(60)
    on_slow(None)
    clocks.cache_clear()
    assert len(found) == 1 and len(said) == 1
