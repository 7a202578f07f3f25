"""Which backend a context has; a kind is imported when the first context of it is used."""

from __future__ import annotations

from pathlib import Path

from yurt.backends.base import Backend
from yurt.errors import UserError
from yurt.hosts import host_of
from yurt.model.context import Context


def backend_of(context: Context, *, accounting: bool, slots: Path) -> Backend:
    """The backend of a context; `slots` is where local runs keep their tickets."""
    if context.type == "local":
        from yurt.backends.local.backend import LocalBackend

        return LocalBackend(host_of(context), slots)
    if context.type == "slurm":
        from yurt.backends.slurm.backend import SlurmBackend

        return SlurmBackend(host_of(context), accounting)
    raise UserError(
        f"context '{context.name}' is of type {context.type}, on which yurt cannot run anything yet",
        code="usage",
        hint="yurt context list shows the types",
    )
