"""`yurt dev up` on this machine: one dev node, however often it is called; and which node it requests on a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.dev.test_nodes import NODES
from tests.lifecycle.test_bad_nodes import FACTS
from tests.store.test_runs import run
from tests.user import User
from yurt.dev import up as dev_up
from yurt.dev.find import Backups
from yurt.model.context import Context
from yurt.model.progress import unwatched
from yurt.model.run import Status
from yurt.model.workspace import Version, Workspace
from yurt.store import Store


def test_two_at_once_are_one_dev_node(user: User) -> None:
    user.environment["HOME"] = str(user.home)
    words = ("dev", "up", "--context", "local", "--no-wait", "--json")
    try:
        with ThreadPoolExecutor() as pool:
            both = [each.result() for each in [pool.submit(user, *words) for _each in range(2)]]
        assert [each.code for each in both] == [0, 0], both
        assert len({each.json["data"]["run"] for each in both}) == 1
        assert len(user.quick("ps", "--json").json["data"]) == 1
    finally:
        user.quick("dev", "down", "--now", "--yes")


def test_the_node_of_the_newest_files_and_one_that_just_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, place = Store(str(tmp_path / "yurt.db")), Context(name="alpha", type="slurm")
    site = SimpleNamespace(nodes=lambda: NODES)
    monkeypatch.setattr("yurt.contexts.connect.backend", lambda _place: SimpleNamespace(site=site))
    held = Backups(place, "/b", Workspace(versions=[Version(number=1, time=1e10, host="n10")]), "a")
    assert dev_up._choice(store, held, place, FACTS, unwatched) == ("n10", {})
    failed = run(1, purpose="dev", name="a")
    store.add(failed, Status(state="failed", node="n10", exit_code=78, reason="v1 needs 2 GB"))
    wish, avoided = dev_up._choice(store, held, place, FACTS, unwatched)
    assert (wish, avoided) == ("n2", {"n10": f"run {failed.id} could not start there: v1 needs 2 GB"})
    store.add(run(2, purpose="dev", name="a"), Status(state="completed", node="n3", exit_code=0))
    assert dev_up._choice(store, held, place, FACTS, unwatched) == ("n10", {})


@pytest.mark.parametrize("option", ["exclude", "x", "nodelist", "constraint", "partition"])
def test_sbatch_options_that_limit_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """Slurm rejects a job that requests a node and excludes it: "Invalid node name specified"."""
    store, place = Store(str(tmp_path / "yurt.db")), Context(name="alpha", type="slurm", sbatch_options={option: "n10"})
    site = SimpleNamespace(nodes=lambda: NODES)
    monkeypatch.setattr("yurt.contexts.connect.backend", lambda _place: SimpleNamespace(site=site))
    held = Backups(place, "/b", Workspace(versions=[Version(number=1, time=1e10, host="n10")]), "a")
    assert dev_up._choice(store, held, place, FACTS, unwatched) == ("", {})
