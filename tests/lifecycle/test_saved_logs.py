"""logs of finished runs whose logs are on this machine: the site gets a moment, or none after a silence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.store.test_runs import run
from yurt.clocks import clocks, within
from yurt.contexts import connect
from yurt.errors import UnreachableError
from yurt.lifecycle.files import logs, many_logs
from yurt.model.run import Status
from yurt.store import Mirrored, Store


class Site:
    """A site that does not respond, and how it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[bool, bool]] = []
        """Whether it may be asked again, and whether it gets only a moment."""

    def backend(self, _name: str, *, alone: bool) -> Any:
        self._alone = alone
        return SimpleNamespace(files=SimpleNamespace(tail=self._tail))

    def _tail(self, *_words: object, **_more: object) -> None:
        self.asked.append((self._alone, within(60) <= clocks().again))
        raise UnreachableError("alpha: no response", code="timed-out")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site()
    monkeypatch.setattr(connect, "responding_backend", made.backend)
    return made


def stored(folder: Path, states: Sequence[str], *, size: int = 6) -> Store:
    store = Store(f"{folder}/yurt.db")
    for number, state in enumerate(states):
        store.add(run(number), Status(state=state, started=1.0, ended=2.0))  # type: ignore[arg-type]
        if state == "completed":
            store.keep({run(number).id: Mirrored(at=3.0, out=b"hello\n", out_size=size)})
    return store


@pytest.mark.parametrize("state", ["completed", "running"])
def test_one_run(tmp_path: Path, site: Site, state: str) -> None:
    store, lines = stored(tmp_path, [state]), list[bytes]()
    if state == "running":
        with pytest.raises(UnreachableError):
            logs.copy(store, run(0), lambda _which, part: lines.append(part))
    else:
        note = logs.copy(store, run(0), lambda _which, part: lines.append(part))
        assert note == "alpha: no response; showing the local copy" and lines[0] == b"hello\n"
    assert site.asked == [(state == "running", state != "running")]
    assert within(60) == 60


def test_the_end_of_a_long_log_is_not_all_of_it(tmp_path: Path, site: Site) -> None:
    store = stored(tmp_path, ["completed"], size=100_000)
    note = logs.copy(store, run(0), lambda _which, _part: None)
    assert note.startswith("alpha: no response; showing the last ") and site.asked == [(True, False)]


@pytest.mark.parametrize("states", [["completed", "completed"], ["completed", "running"]])
def test_several_runs(tmp_path: Path, site: Site, states: list[str]) -> None:
    store, lines = stored(tmp_path, states), list[bytes]()
    entries = store.several([run(number).id for number in range(2)])
    here = "running" not in states
    if here:
        (warning,) = many_logs.copy_many(store, entries, lambda _run, _which, part: lines.append(part))
        assert "showing the local copy for 2 of 2 runs" in warning and lines.count(b"hello\n") == 2
    else:
        with pytest.raises(UnreachableError):
            many_logs.copy_many(store, entries, lambda _run, _which, part: lines.append(part))
    assert site.asked == [(not here, here)]
