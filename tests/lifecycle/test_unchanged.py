"""A refresh by an early answer: only if nothing is due and the site answers as before."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.store.test_runs import run
from yurt.contexts import connect, early_answer
from yurt.errors import UnreachableError
from yurt.lifecycle.refresh.refresh import refresh_contexts
from yurt.lifecycle.refresh.unchanged import Unchanged, unchanged
from yurt.model.digest import checksum
from yurt.model.run import Status
from yurt.model.status_answer import expiring
from yurt.store import Store
from yurt.transport import queue_prefetch

ROW = b"= queue\n7|RUNNING|None|2026-01-01T00:00:00|n1|yurt-x\n"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An index with one run, whose row in the queue is known."""
    monkeypatch.setenv("YURT_CONFIG_HOME", str(tmp_path))
    (tmp_path / "contexts.yaml").write_text("contexts: {}\n")
    with Store(f"{tmp_path}/yurt.db") as opened:
        opened.add_found([])
        opened.add(run(1), Status(state="running", job="7", confirmed=True, submitted=1.0))
        opened.change([run(1).id], lambda _run, status: status, lambda _run, _status: "7|RUNNING")
        opened.note_refresh("alpha", 5.0, checksum(ROW))
        yield opened
    queue_prefetch._pending.clear()


class Sent:
    """A query that was sent early, with its answer."""

    def __init__(self, store: Store, answer: bytes, running: str = "") -> None:
        self.key, self.frame = b"key", (b"\nbegin\n", b"end ")
        self.basis = early_answer.basis_of_status("alpha", store.refs("alpha"), running)
        self.received = b"noise\nbegin\n" + answer + b"end 0\n"
        self.failed, self.timed_out, self.seconds = False, False, 0.0


def send(store: Store, answer: bytes, running: str = "") -> None:
    queue_prefetch._pending[:] = [Sent(store, answer, running)]  # type: ignore[list-item]


def test_the_same_answer_is_a_refresh(store: Store) -> None:
    assert unchanged(store, "alpha") is None, "nothing was sent"
    send(store, ROW)
    before = time.time()
    assert unchanged(store, "alpha") == Unchanged([])
    assert (store.refreshed_at("alpha") or 0) >= before
    assert queue_prefetch.answer(b"key", 1, 1, lambda _begun: None) is not None, "the query may still use it"


def test_the_time_of_known_states_is_not_before_a_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_words: object, **_more: object) -> None:
        raise UnreachableError("alpha: Slurm does not respond", code="timed-out")

    monkeypatch.setattr(connect, "responding_backend", silent)
    submitted = run(1).created + 100  # it was saved before
    store.change([run(1).id], lambda _run, status: msgspec.structs.replace(status, submitted=submitted))
    for at, shown in ((submitted - 1, "last known states"), (submitted + 1, "state of ")):
        store.note_refresh("alpha", at, checksum(ROW))
        (warning,) = refresh_contexts(store, ["alpha"]).warnings
        assert f"Slurm does not respond; showing the {shown}" in warning


def test_an_empty_list_of_folders_changes_nothing(store: Store) -> None:
    answer = ROW + b"= folders\n"
    store.note_refresh("alpha", 5.0, checksum(answer))
    send(store, answer)
    assert unchanged(store, "alpha") is not None
    answer += b"x||0||||\n"
    store.note_refresh("alpha", 5.0, checksum(answer))
    send(store, answer)
    assert unchanged(store, "alpha") is None


def test_metrics_do_not_count_as_a_change(store: Store) -> None:
    answer = b'|{"loss": 1}\n|= queue\n~= 1 1 2 -\n' + ROW
    send(store, answer, "/far/runs/x")
    found = unchanged(store, "alpha", "/far/runs/x")
    assert found is not None and found.files is not None
    assert found.files.metrics == b'{"loss": 1}\n= queue\n' and found.files.usage == b"= 1 1 2 -\n"
    assert unchanged(store, "alpha") is None, "another query"


def test_what_is_different_needs_the_query(store: Store, tmp_path: Path) -> None:
    send(store, ROW.replace(b"RUNNING", b"PENDING"))
    assert unchanged(store, "alpha") is None
    send(store, ROW)
    store.add(run(2), Status(state="running", job="8", submitted=1.0))
    assert unchanged(store, "alpha") is None, "one more run"
    store.remove(run(2).id)
    os.utime(tmp_path / "contexts.yaml", (1, 1))
    assert unchanged(store, "alpha") is None, "another configuration"
    send(store, ROW)
    assert unchanged(store, "alpha") is not None


def test_what_is_due_needs_the_query(store: Store, tmp_path: Path) -> None:
    send(store, ROW)
    (tmp_path / "calls").mkdir()
    assert unchanged(store, "alpha") is None
    (tmp_path / "calls").rmdir()
    store.add(run(3), Status(state="waiting"))
    assert unchanged(store, "alpha") is None, "a run to submit"


def test_a_young_run_is_marked_until_it_is_confirmed(store: Store) -> None:
    name = run(1).id
    for at, valid in ((time.time() + 60, True), (time.time() - 1, False)):
        store.change([name], lambda _run, status: status, lambda _run, _status, at=at: expiring("7|RUNNING", at))  # type: ignore[misc]
        send(store, ROW)
        assert store.refs("alpha")[0].mark == ("7|RUNNING" if valid else "")
        assert (unchanged(store, "alpha") is not None) is valid


def test_a_failed_query_is_made_again(store: Store) -> None:
    send(store, ROW)
    queue_prefetch._pending[0].received = b"\nbegin\n" + ROW + b"end 7\n"
    assert unchanged(store, "alpha") is None
    queue_prefetch._pending[0].timed_out = True
    queue_prefetch._pending[0].received = None
    assert unchanged(store, "alpha") is None
    with pytest.raises(TimeoutError):
        queue_prefetch.answer(b"key", 1, 1, lambda _begun: None)
