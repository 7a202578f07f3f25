"""How often `yurt wait` queries sites, and its progress."""

from __future__ import annotations

import time

import pytest

from tests.user import User
from yurt.clocks import clocks
from yurt.config import contexts, facts
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.verbs.wait import longest_pause


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


def test_the_progress_ends_without_an_empty_list_of_states(user: User) -> None:
    done = user("-v", "run", "--wait", "sh", "-c", "sleep 1")
    assert done.code == 0 and "1 unfinished (running)" in done.err, done
    assert " s  all finished\n" in done.err and "()" not in done.err
