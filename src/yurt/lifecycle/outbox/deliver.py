"""Hands a plan to its site, with the code if the site has not got it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends.base import Backend, CodeParcel, Placed
from yurt.errors import UnreachableError
from yurt.model.run import Plan

if TYPE_CHECKING:
    from yurt.model.secrets import Shares


def place(
    plan: Plan,
    backend: Backend,
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
    from yurt.snapshot import send

    receiver = send.receiver() if plan.run.code.tree else ""
    code = CodeParcel(receiver=receiver) if hope or not plan.run.code.tree else _parcel(plan, known)
    for _try in range(4):
        placed = backend.submit(plan, nonce, code, start=start, tasks=tasks, shares=shares, calls=calls)
        if placed.base_missing:
            code = _parcel(plan, [])
        elif placed.needs is not None:
            code = _parcel(plan, placed.needs)
        else:
            return placed
    raise UnreachableError(
        f"{backend.host.name}: the code did not arrive", code="answer-lost", hint="repeat the command: it is safe to"
    )


def _parcel(plan: Plan, known: Sequence[str]) -> CodeParcel:
    from yurt import snapshot
    from yurt.snapshot import send

    taken = snapshot.Snapshot(plan.run.code.tree, plan.run.code.files, plan.run.code.size, Path(plan.store))
    code = send.code_for(taken, known)
    return CodeParcel(receiver=send.receiver(), kind=code.kind, base=code.base, content=code.content)
