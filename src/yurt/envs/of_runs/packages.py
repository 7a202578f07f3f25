"""The packages of a run's environment: from the run's record, this machine's copy of the lock, or the site."""

from __future__ import annotations

from contextlib import suppress

from yurt.config import paths
from yurt.contexts import connect
from yurt.envs.lock import Lock, Package, conda_packages
from yurt.envs.of_runs import locks
from yurt.errors import YurtError
from yurt.model.env import RunEnv
from yurt.model.run import Run
from yurt.store import Store


def packages_of(store: Store, run: Run, *, ask: bool = False) -> dict[str, str]:
    """Return the versions of the packages of a run's environment, by name; empty if they are not known.

    `ask`: read them from the site if this machine does not have them, as after an import.
    """
    if run.env is None:
        return {}
    plan = store.plan(run.sweep or run.id)
    if plan is not None and plan.packages:
        return plan.packages
    return kept(run.env, run.context) or (_asked(run.context, run.env) if ask else {})


def kept(env: RunEnv, context: str) -> dict[str, str]:
    """Return the packages of an environment of a context that this machine has recorded."""
    for file in (locks.file(env.address), locks.file(env.address, context)):
        with suppress(OSError):
            return {each.name: each.version for each in listed(file.read_text(), env.title)}
    return {}


def keep(env: RunEnv, context: str, text: str) -> None:
    """Record the packages of an environment that were chosen on the site."""
    if text.strip():
        paths.write_private(locks.file(env.address, context), text.encode())


def listed(text: str, title: str) -> list[Package]:
    """Return the packages in the file `lock` of an environment that the file `title` declares."""
    return conda_packages(text) if is_conda(title) else Lock(text).packages


def is_conda(title: str) -> bool:
    """Whether conda chooses the packages of a declaration."""
    return title.endswith((".yml", ".yaml"))


def _asked(context: str, env: RunEnv) -> dict[str, str]:
    with suppress(YurtError):
        (state,) = connect.named_backend(context).envs.look([env.folder])
        keep(env, context, state.lock)
    return kept(env, context)
