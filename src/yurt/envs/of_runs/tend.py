"""Tends the runs whose jobs are held until their environment is built. Usually the builder itself releases them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.contexts.advance import Advanced
from yurt.errors import DownloadError, UserError, YurtError
from yurt.model import layout
from yurt.model.env import EnvState
from yurt.model.progress import Watch, unwatched
from yurt.model.run import Run, Status
from yurt.model.state import BUILDING
from yurt.store import Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def tend(store: Store, context: str, backend: Backend, watch: Watch = unwatched) -> Advanced:
    """Say how far the builds are, release what was not released, and repeat builds that were interrupted."""
    waiting: dict[str, list[Entry]] = {}
    for entry in store.several(store.building(context)):
        if entry.run.env is not None:
            waiting.setdefault(entry.run.env.folder, []).append(entry)
    if not waiting:
        return Advanced()
    with suppress(YurtError):  # repeated by the next refresh
        for state in backend.envs.look(list(waiting), brief=True):
            if not _tend_one(store, backend, state, waiting[state.folder]):
                _repeat(store, backend, state, waiting[state.folder], watch)
    return Advanced()


def _repeat(store: Store, backend: Backend, state: EnvState, entries: Sequence[Entry], watch: Watch) -> None:
    """Repeat a build that was interrupted, or that needs packages that the index of the site lacks."""
    from yurt.envs.of_runs import build  # needs a second to import, and no other refresh needs it

    envs = [each.run.env for each in entries if each.run.env is not None]
    env = next((each for each in envs if each.place == "tmpdir"), envs[0])
    try:
        build.start_saved(entries[0].run.context, env, backend.envs, watch, lacking=state.lacking)
    except (UserError, DownloadError) as error:  # says nothing about the other environments of the site
        for entry in entries:
            _set(store, entry.run, reason=f"its environment cannot be built: {error.message}")


def _tend_one(store: Store, backend: Backend, state: EnvState, entries: Sequence[Entry]) -> bool:
    """Return False if nobody builds the environment, and the runs still wait for it."""
    env = entries[0].run.env
    assert env is not None
    if state.condition == "failed":
        from yurt.contexts import env_tools

        env_tools.forget(entries[0].run.context)
    if state.condition in ("ready", "failed"):
        for entry in entries:
            if state.phase and entry.run.env is not None and entry.run.env.place == "tmpdir":
                continue  # it is still being packed; its builder releases the run
            with suppress(YurtError):  # not held any more
                _release(backend, entry)
            _set(store, entry.run, building=False, reason="")
    elif state.condition == "building":
        count = f": {state.installed} of {env.packages} packages" if env.packages else ""
        if 0 < env.packages <= state.installed:  # takes longer than the installation itself
            count = ": all packages are installed, and are being compiled"
        for entry in entries:
            _set(store, entry.run, reason=BUILDING + count)
    return state.condition in ("ready", "failed", "building")


def _release(backend: Backend, entry: Entry) -> None:
    """Release a run whose environment is built, unless it waits for a home sync, which then releases it."""
    if not entry.run.home_sync:
        backend.runs.release(_jobs(entry))
    elif entry.run.env is not None:
        backend.envs.let_go(entry.run.env.folder, _jobs(entry))  # first: a sync that ends now looks for it
        backend.runs.release_synced(_jobs(entry))


def let_go(store: Store, backend: Backend, entry: Entry) -> None:
    """Leave a run held that waits for its environment: the user has said so, and releases it."""
    if entry.status.building and entry.run.env is not None:
        backend.envs.let_go(entry.run.env.folder, _jobs(entry))
        _set(store, entry.run, building=False, reason="")


def _jobs(entry: Entry) -> list[str]:
    names = [f"{entry.run.id}+{offset}" for offset in entry.status.offsets] if entry.run.tasks else [entry.run.id]
    return [f"jobname={layout.job_name(name)}" for name in names]


def _set(store: Store, run: Run, **fields: Any) -> None:
    def changed(status: Status) -> Status:
        return status if status.final or not status.building else msgspec.structs.replace(status, **fields)

    if run.tasks:
        store.change_tasks(run.id, whole=changed)
    else:
        store.change([run.id], lambda _run, status: changed(status))
