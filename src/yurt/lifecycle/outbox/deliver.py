"""Hands a plan to its site, with the code if the site has not got it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends.answers import CodeParcel, Placed
from yurt.errors import UnreachableError
from yurt.model.run import Plan

if TYPE_CHECKING:
    from yurt.backends.base import Runs
    from yurt.model.secrets import Shares


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
) -> Placed:
    """Submit, with the code if the site has not got it: one trip if what it has was known, else two."""
    code = CodeParcel() if hope or not plan.run.code.tree else parcel(plan, known)
    for _try in range(4):
        placed = runs.submit(plan, nonce, code, start=start, tasks=tasks, shares=shares, calls=calls)
        if placed.base_missing:
            code = parcel(plan, [])
        elif placed.needs is not None:
            code = parcel(plan, placed.needs)
        else:
            return placed
    raise UnreachableError(
        f"{plan.run.context}: the code did not arrive", code="connection-lost", hint="repeat the command: it is safe to"
    )


def parcel(plan: Plan, known: Sequence[str]) -> CodeParcel:
    """The code of a plan, for a context that knows these trees of the project."""
    from yurt import snapshot
    from yurt.snapshot import send

    taken = snapshot.Snapshot(plan.run.code.tree, plan.run.code.files, plan.run.code.size, Path(plan.store))
    code = send.code_for(taken, known)
    return CodeParcel(kind=code.kind, base=code.base, content=code.content)
