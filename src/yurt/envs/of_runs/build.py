"""Starts builds of environments on sites, and uploads the wheels that a site without internet needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from yurt.config import paths, trust
from yurt.envs.lock import Lock
from yurt.envs.of_runs import give, prepare
from yurt.envs.of_runs.known import Definition
from yurt.envs.of_runs.prepare import Prepared
from yurt.errors import RefusedError
from yurt.model.env import RunEnv
from yurt.model.progress import Event, Watch, unwatched

if TYPE_CHECKING:
    from yurt.backends.base import Envs


def start_saved(
    context: str, env: RunEnv, envs: Envs, watch: Watch = unwatched, *, lacking: Sequence[str] = ()
) -> bool:
    """Start to build an environment that was prepared on this machine. As `start`."""
    prepared = prepare.saved(context, env)
    if prepared is None:
        raise RefusedError(
            f"the definition of environment {env.address} is not on this machine",
            code="impossible",
            hint="submit the run again from its project",
        )
    return start(context, prepared, envs, lacking=lacking, watch=watch)


def start(
    context: str, prepared: Prepared, envs: Envs, *, lacking: Sequence[str] = (), watch: Watch = unwatched
) -> bool:
    """Start to build an environment, after its wheels are on the site. Return whether it is complete already.

    `lacking`: packages that the index of the site lacks; their wheels are uploaded. If the declaration has a password,
    all are: it stays on this machine.
    """
    if prepared.build.kind == "conda":
        build = give.with_conda(context, prepared, envs, watch)
    else:
        build = give.with_uv(context, prepared, envs, watch)
        lock = Lock(build.lock.decode())
        house, public = lock.wheelhouse, lock.without_passwords
        offline = prepared.offline or public != lock
        absent = lock.part(lambda name: name not in house and (offline or name in lacking))
        sent = _send_wheels(context, prepared, absent, envs, watch) if absent.packages else []
        wheels, text = [*sent, *house.values()], public.text.encode()
        build = msgspec.structs.replace(build, wheels=wheels, no_index=offline, lock=text)
    watch(Event(f"starting to build the environment on {context}"))
    return envs.start(build)


def _send_wheels(context: str, prepared: Prepared, lock: Lock, envs: Envs, watch: Watch) -> list[str]:
    """Download the wheels for the site on this machine and upload those that it lacks; return all."""
    from yurt.envs import wheels

    project = msgspec.json.decode(prepared.build.definition, type=Definition).project
    builds = trust.of(project).builds
    fetched = wheels.fetch(lock, prepared.target, paths.data_home() / "wheels", builds=builds, watch=watch)
    files = {f"{each.sha256}/{each.file}": each for each in fetched}
    missing = [files[name] for name in envs.lacking(prepared.env.folder, list(files)) if name in files]
    total, title = sum(each.size for each in missing), f"uploading {len(missing)} packages to {context}"
    done = 0
    for each in missing:
        moved = partial(_moved, watch, title, done, total)
        envs.send(prepared.env.folder, f"{each.sha256}/{each.file}", each.path.read_bytes(), moved)
        done += each.size
    return list(files)


def _moved(watch: Watch, title: str, before: int, total: int, count: int) -> None:
    watch(Event(title, before + count, total, bytes=True))
