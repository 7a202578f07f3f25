"""The last metrics of a running run, if its site responds late or not at all."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest

from tests.tracking.test_curves import RUN, entry, lines, logged
from tests.user import User
from yurt.errors import UnreachableError
from yurt.lifecycle.files.metrics import Metric
from yurt.store import Entry, Store
from yurt.tracking import last
from yurt.tracking.followed import Followed


@pytest.fixture
def store(user: User, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("YURT_DATA_HOME", user.environment["YURT_DATA_HOME"])
    (user.home / "data").mkdir()
    return Store(str(user.home / "data" / "yurt.db"))


def remote() -> Entry:
    local = entry(RUN)
    run = msgspec.structs.replace(local.run, context="big", context_type="slurm")
    return msgspec.structs.replace(local, run=run)


def test_the_copy_counts_if_the_site_hangs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    logged(RUN, "metrics.jsonl", lines({"step": 1, "loss": 0.5}))
    never = threading.Event()
    monkeypatch.setattr(last, "_bring", lambda _unit: never.wait(60))
    started = time.monotonic()
    assert last.last(store, remote(), patience=0.2) == [Metric("loss", 0.5, 1)]
    assert time.monotonic() - started < 30
    never.set()


def test_errors_of_the_site_are_not_raised(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_name: str) -> None:
        raise UnreachableError("big did not respond", code="timed-out")

    monkeypatch.setattr("yurt.contexts.connect.responding_backend", fails)
    assert last.last(store, remote(), patience=10) == []


def test_only_metrics_and_samples_are_asked_for(store: Store) -> None:
    logged(RUN, "work/runs/x/events.out.tfevents.1.host", b"")
    unit = last._Shallow(run=RUN, context="big", folder="/f", place="/elsewhere")
    asked = unit.growing(Followed(RUN), deep=True)
    assert not asked.deep and not asked.place and [each.path for each in asked.known] == ["metrics.jsonl", "usage"]
