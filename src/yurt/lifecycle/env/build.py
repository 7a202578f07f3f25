"""Starts builds of environments, and tends the runs that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yurt.errors import RefusedError
from yurt.lifecycle.env import prepare
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.run import Plan

if TYPE_CHECKING:
    from yurt.backends.base import Envs


def start(plan: Plan, envs: Envs, watch: Watch = unwatched) -> bool:
    """Start to build the environment of a run. Return whether it is complete already."""
    env = plan.run.env
    assert env is not None
    prepared = prepare.saved(plan.run.context, env.address)
    if prepared is None:
        raise RefusedError(
            f"the definition of environment {env.address} is not on this machine",
            code="impossible",
            hint="submit the run again from its project",
        )
    count = f": {env.packages} packages" if env.packages else ""
    watch(Event(f"building the environment of {env.title} on {plan.run.context}, once{count}"))
    return envs.start(prepared.build)
