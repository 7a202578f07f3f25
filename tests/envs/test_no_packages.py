"""A saved run whose packages cannot be downloaded now waits by itself: it says why, and other runs are submitted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from yurt.backends.answers import Placed
from yurt.config import contexts
from yurt.envs.of_runs import build
from yurt.envs.of_runs.tend import tend
from yurt.errors import DownloadError, UnreachableError
from yurt.lifecycle.outbox.outbox import send_waiting
from yurt.lifecycle.plan import settle
from yurt.lifecycle.plan.scheduling import Needs
from yurt.model.context import Context
from yurt.model.env import EnvState, RunEnv
from yurt.model.run import Plan, Resources, Run, Setup, Status
from yurt.store import Store

ALPHA = Context(name="alpha", type="slurm", slurm_url="me@alpha")
ENV = RunEnv(address="0123", title="uv.lock", folder="/yurt/envs/0123", python="3.11", packages=1)
NO_INDEX = DownloadError("the packages of uv.lock cannot be resolved", code="connection-lost")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("YURT_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(contexts, "site", lambda _name: ALPHA)
    monkeypatch.setattr(contexts, "named", lambda _name: ALPHA)
    with Store(str(tmp_path / "yurt.db")) as index:
        yield index


def save(store: Store, name: str, *, env: bool = False, draft: bool = False) -> None:
    run = Run(
        id=name,
        context="alpha",
        context_type="slurm",
        project=name,
        source="/p",
        created=1.0,
        command=["true"],
        folder=f"/yurt/projects/{name}/runs/{name}",
        env=ENV if env else None,
    )
    setup = Setup(env=ENV.folder if env else "")
    plan = Plan(run=run, project_folder=f"/yurt/projects/{name}", store="", words=[b"true"], setup=setup)
    needs = Needs(resources=Resources(), options={}, script=None)
    store.add(
        run,
        Status(state="waiting", reason="alpha did not respond"),
        plan,
        msgspec.json.encode(settle.Draft(plan, ALPHA, needs, b"{}")) if draft else b"",
    )


def site() -> Any:
    """A site that has no environments, and accepts all runs that need none."""

    def submit(plan: Plan, *_words: object, **_options: object) -> Placed:
        return Placed(needs_env=True) if plan.setup.env else Placed(job="7")

    return SimpleNamespace(runs=SimpleNamespace(submit=submit), envs=None)


def failing(tries: list[str], error: UnreachableError) -> Any:
    def fail(*_words: object, **_options: object) -> None:
        tries.append("")
        raise error

    return fail


@pytest.mark.parametrize("draft", [False, True])
def test_the_others_are_submitted(store: Store, monkeypatch: pytest.MonkeyPatch, *, draft: bool) -> None:
    tries: list[str] = []
    monkeypatch.setattr(*((settle, "settle_later") if draft else (build, "start_saved")), failing(tries, NO_INDEX))
    for name in ("first", "second"):
        save(store, name, env=True, draft=draft)
    save(store, "last")
    done = send_waiting(store, "alpha", site())
    assert (done.submitted, done.stopped, done.refused) == (["last"], None, {}) and len(tries) == 1
    for name in ("first", "second"):
        entry = store.get(name)
        assert entry is not None and entry.status.state == "waiting" and entry.status.reason == NO_INDEX.message
        assert entry.status.attempts == 0 and NO_INDEX.message in done.notes[name]


def test_a_site_that_does_not_respond_stops_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = UnreachableError("alpha did not respond", code="timed-out")
    monkeypatch.setattr(build, "start_saved", failing([], silent))
    save(store, "first", env=True)
    save(store, "last")
    done = send_waiting(store, "alpha", site())
    assert (done.submitted, done.stopped) == ([], silent)


def test_the_other_builds_are_looked_after(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "start_saved", failing([], NO_INDEX))
    other = msgspec.structs.replace(ENV, folder="/yurt/envs/4567")
    for name, env in (("first", ENV), ("last", other)):
        save(store, name, env=True)
        entry = store.get(name)
        assert entry is not None
        store.remove(name)
        run = msgspec.structs.replace(entry.run, env=env)
        store.add(
            run, Status(state="queued", job="7", building=True), Plan(run=run, project_folder="/p", store="", words=[])
        )
    states = [EnvState(folder=ENV.folder, condition="none"), EnvState(folder=other.folder, condition="ready")]
    released: list[str] = []
    backend: Any = SimpleNamespace(
        envs=SimpleNamespace(look=lambda *_folders, **_how: states), runs=SimpleNamespace(release=released.extend)
    )
    tend(store, "alpha", backend)
    first, last = store.get("first"), store.get("last")
    assert first is not None and NO_INDEX.message in first.status.reason and first.status.building
    assert last is not None and not last.status.building and released == ["jobname=yurt-last"]
