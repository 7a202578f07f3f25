"""show: everything known of one run; and a plan as one looks at it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from yurt.backends.base import Backend
from yurt.model.run import Plan, Run, Status
from yurt.store import Entry, Store


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done for a run: its record, the job's options, the files that would be sent."""

    run: Run
    submitted_as: str
    script: str
    data: str
    sends: dict[str, int]
    """The size of each file, in bytes; code only if the context has it not."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what was asked for, how it stands, and where its things are."""

    run: Run
    status: Status
    looked_at: float | None
    """When its site was last looked at."""
    retried_as: list[str]
    """Runs that were made of it by `retry`."""
    removed_at: float | None = None
    """When `prune` removed its folder from its site."""
    copies: list[str] = []
    """Folders of this machine's that have its results."""


def show(store: Store, entry: Entry) -> Shown:
    return Shown(
        run=entry.run,
        status=entry.status,
        looked_at=store.looked_at(entry.run.context),
        retried_as=store.retries(entry.run.id),
        removed_at=store.gone_at(entry.run.id),
        copies=[_path(copy.target) for copy in store.copies(entry.run.id) if Path(os.fsdecode(copy.target)).is_dir()],
    )


def _path(path: bytes) -> str:
    return path.decode(errors="backslashreplace")


def plan_view(plan: Plan, backend: Backend) -> PlanView:
    files = backend.files(plan)
    return PlanView(
        run=plan.run,
        submitted_as=backend.as_typed(plan),
        script=files["job.sh"].decode(),
        data=files["data"].decode(errors="backslashreplace"),
        sends={"code": plan.run.code.size, **{name: len(each) for name, each in files.items()}},
    )
