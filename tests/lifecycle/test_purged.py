"""A run whose submission was interrupted, and whose run folder does not exist: it starts again only if that is safe."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.user import User
from yurt.model.run import Status
from yurt.model.state import PURGE
from yurt.store import Store
from yurt.testing.waiting import eventually


def interrupted(user: User, *words: str, ago: float) -> tuple[str, str]:
    """Run a command, then let the index and the site look as if its submission was interrupted and its folder removed.

    Return the run and its folder.
    """
    made = user.quick("--context", "local", "--json", "run", *words).json["data"]["run"]
    assert user.quick("wait", made["id"], "--timeout", "60").code == 0
    since = time.time() - ago
    with Store(str(user.home / "data" / "yurt.db")) as store:
        reset = Status(state="submitting", attempts=1, unsure_since=since)
        if made["tasks"]:
            store._db.execute("DELETE FROM tasks")
            store._db.execute("UPDATE sweeps SET over = ''")
            store.change_tasks(made["id"], whole=lambda _status: reset)
        else:
            store.change([made["id"]], lambda _run, _status: reset)

    def removed() -> bool:  # the process of the job may still delete its own files
        shutil.rmtree(made["folder"], ignore_errors=True)
        return not Path(made["folder"]).exists()

    eventually(removed)
    return made["id"], made["folder"]


@pytest.mark.parametrize("grid", [[], ["--grid", "n=1"]])
def test_a_run_that_may_have_been_purged_does_not_start_again(user: User, grid: list[str]) -> None:
    ledger = user.home / "ledger"
    run, _folder = interrupted(user, *grid, "sh", "-c", f"echo ran >> {ledger}", ago=2.2 * PURGE)
    done = user.quick("wait", run, "--timeout", "60", "--json")
    assert done.code == 1
    status = done.json["data"][0]["status"]
    assert status["state"] in ("lost", "failed"), "a sweep without completed tasks has failed"
    why = "its submission was interrupted 2 days ago, and it may have run since: its run folder does not exist"
    assert status["reason"] == why
    assert ledger.read_text() == "ran\n"


@pytest.mark.parametrize("grid", [[], ["--grid", "n=1"]])
def test_a_run_that_never_arrived_is_submitted(user: User, grid: list[str]) -> None:
    ledger = user.home / "ledger"
    run, _folder = interrupted(user, *grid, "sh", "-c", f"echo ran >> {ledger}", ago=0.5 * PURGE)
    assert user.quick("wait", run, "--timeout", "60").code == 0
    assert ledger.read_text() == "ran\n" * 2, "as if the first had been lost"
