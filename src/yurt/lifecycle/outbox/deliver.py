"""Submits a plan to its site, and uploads the code if the site does not have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt import snapshot
from yurt.backends.answers import ChangedFiles, CodeParcel, Placed, Uploaded
from yurt.backends.kinds import kind_of
from yurt.errors import UnreachableError
from yurt.model.run import Plan

if TYPE_CHECKING:
    from yurt.backends.base import Runs
    from yurt.model.secrets import Shares
    from yurt.model.storage import TierPlace

PLAIN = "plain"
"""What a site without git lists instead of its trees."""


def place(
    plan: Plan,
    runs: Runs,
    nonce: str,
    known: Sequence[str],
    *,
    hope: bool,
    start: int,
    shares: Shares | None,
    tasks: str = "",
    calls: bytes = b"",
    upload: Callable[[CodeParcel], Uploaded] | None = None,
    build: Callable[[], bool] | None = None,
    room: TierPlace | None = None,
) -> Placed:
    """Submit a plan, and upload the code if the site does not have it.

    It takes one round trip if the index knows which code the site has, else two. `upload` uploads large code before.
    `build` starts to build the environment of the run, and returns whether it is complete already.
    `room`: a storage tier whose free space is queried, too.
    """
    building = False
    code = CodeParcel() if hope or not plan.run.code.tree else parcel(plan, known)
    changed, env_change = ChangedFiles(), ""
    for _try in range(6):
        if upload is not None and code.large and not kind_of(plan.run.context_type).here:
            uploaded = upload(code)
            if uploaded != "complete":
                code = parcel(plan, [PLAIN] if uploaded == "no git" else [])
                continue
            code = CodeParcel()
        placed = runs.submit(
            plan, nonce, code, start=start, tasks=tasks, shares=shares, calls=calls, building=building, room=room
        )
        changed = changed if changed.count else placed.changed
        env_change = env_change or placed.env_change
        if placed.needs_env and build is not None:
            building = not build()
        elif placed.base_missing:
            code = parcel(plan, [])
        elif placed.needs is not None:
            code = parcel(plan, placed.needs)
        else:
            return msgspec.structs.replace(placed, changed=changed, env_change=env_change)
    raise UnreachableError(
        f"{plan.run.context}: the code was not uploaded",
        code="connection-lost",
        hint="run the command again; it is safe to retry",
    )


def parcel(plan: Plan, known: Sequence[str]) -> CodeParcel:
    """Return the code of a plan, packed for a context that has these trees of the project."""
    from yurt.snapshot import send

    taken = snapshot.Snapshot(plan.run.code.tree, plan.run.code.files, plan.run.code.size, Path(plan.store))
    code = send.code_for(taken, known)
    return CodeParcel(kind=code.kind, base=code.base, content=code.content)
