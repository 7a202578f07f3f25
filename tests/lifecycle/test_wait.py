"""How often `yurt wait` queries sites, its progress, and how soon it ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.user import User
from yurt.clocks import clocks
from yurt.config import contexts, facts
from yurt.contexts import connect
from yurt.lifecycle.refresh.local_ends import LocalEnds
from yurt.lifecycle.refresh.poll_interval import bounds, longest_pause, next_pause, next_pause_of_watch
from yurt.lifecycle.wait import wait
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.run import Run, Status
from yurt.store import Entry
from yurt.testing.waiting import eventually


@pytest.mark.parametrize(
    ("accounting", "age", "pause"),
    [(False, 10, 5.0), (False, 1, 1.0), (False, 300, None), (True, 10, None)],
)
def test_finished_jobs_are_seen_before_slurm_drops_them(
    user: User, monkeypatch: pytest.MonkeyPatch, accounting: bool, age: int, pause: float | None
) -> None:
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    contexts.default_file().parent.mkdir(exist_ok=True)
    contexts.default_file().write_text("contexts: {big: {type: slurm, slurm_url: alice@big}}\n")
    found = Facts(
        user="alice", host="login", probed_at=time.time(), slurm_version="22.05", accounting=accounting, min_job_age=age
    )
    facts.save(Context(name="big", type="slurm", slurm_url="alice@big"), found)
    assert longest_pause(["big", "local", "removed"]) == (pause or clocks().last_refresh)


def test_intervals_of_calls_and_of_a_watched_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YURT_CLOCKS", "first_refresh=1 last_refresh=7")
    clocks.cache_clear()
    assert bounds("slurm") == (1.0, 7.0) and bounds("local") == (0.02, 2.0)
    clocks.cache_clear()
    assert next_pause_of_watch(25.0, changed=False) == 30.0 and next_pause_of_watch(25.0, changed=True) == 2.0


def test_the_progress_ends_without_an_empty_list_of_states(user: User) -> None:
    done = user("-v", "run", "--wait", "sh", "-c", "sleep 1")
    assert done.code == 0 and "1 unfinished (running)" in done.err, done
    assert " s  all finished\n" in done.err and "()" not in done.err


def refreshes(seconds: float) -> tuple[int, float]:
    """Return how often `wait` refreshes a run of that length, and how late it may end, if a refresh takes no time."""
    at, pause, count = 0.0, 0.5, 1
    while at < seconds:
        at, count = at + pause, count + 1
        last, pause = pause, next_pause(pause, at, 15.0)
    return count, last


@pytest.mark.parametrize(
    ("seconds", "lag", "most"),
    [(3, 1, 6), (20, 1, 25), (45, 2.25, 45), (300, 15, 80), (3600, 15, 300), (24 * 3600, 15, 24 * 240 + 60)],
)
def test_a_wait_ends_soon_after_a_run_with_few_queries(seconds: float, lag: float, most: int) -> None:
    count, last = refreshes(seconds)
    assert last <= lag * 1.0001
    assert count <= most


def test_a_short_longest_pause_is_kept() -> None:
    assert next_pause(4.9, 3600, 5.0) == 5.0


@pytest.mark.parametrize(
    "runs",
    [[["train.py"]], [["--grid", "a=1,2", "train.py"]], [["train.py"], ["train.py"]]],
    ids=["run", "sweep", "two-runs"],
)
def test_the_end_of_local_runs_is_noticed_long_before_the_next_refresh(
    user: User, monkeypatch: pytest.MonkeyPatch, runs: list[list[str]]
) -> None:
    (user.project / "train.py").write_text("import os, time\nwhile not os.path.exists('../go'): time.sleep(0.05)\n")
    submitted = [user.quick("run", "--json", *words).json["data"]["run"] for words in runs]
    folders = [
        Path(run["folder"], below)
        for run in submitted
        for below in ([f"tasks/{number}" for number in range(run["tasks"])] or ["."])
    ]
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("YURT_CLOCKS", "first_refresh=600 last_refresh=600")
    clocks.cache_clear()

    def go(_entries: list[Entry], _warnings: list[str]) -> None:
        for folder in folders:
            eventually(folder.is_dir)
            (folder / "go").touch()

    begun = time.monotonic()
    done = wait([run["id"] for run in submitted], timeout=120, on_refresh=go)
    clocks.cache_clear()
    assert done.exit_code == 0
    assert time.monotonic() - begun < 110  # before the refresh at the timeout, which would see the end as well


def test_only_new_ends_interrupt_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = [{"r1": os.getpid()}, {"r1": os.getpid()}, dict[str, int]()]
    monkeypatch.setattr(connect, "slots", lambda: alive.pop(0))
    ends = LocalEnds([entry("r1"), entry("r2"), entry("r3", "slurm")])
    assert ends.contexts == ["here"]
    assert ends.sleep(60)  # r1 ended; r2 had no process from the start
    assert not alive


def entry(run: str, kind: str = "local") -> Entry:
    made = Run(
        id=run,
        context="here" if kind == "local" else kind,
        context_type=kind,
        project="p",
        source="/p",
        created=0,
        command=["x"],
        folder=f"/nowhere/{run}",
    )
    return Entry(made, Status(state="running"))
