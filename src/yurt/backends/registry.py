"""Which backend a context has, and which host; a kind is imported when the first context of it is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.errors import UserError
from yurt.hosts import Host, LocalHost, SshHost
from yurt.model.context import Context

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def backend_of(context: Context, *, accounting: Callable[[], bool], slots: Path) -> Backend:
    """The backend of a context; `slots` is where local runs keep their tickets, `accounting` is asked of clusters."""
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


def host_of(context: Context) -> Host:
    """The host on which a context's commands run: its login node, or this machine."""
    if context.type == "local":
        return LocalHost()
    if context.type == "slurm" and context.slurm_url:
        return SshHost(context.name, context.slurm_url, context.ssh_options, context.ssh_command)
    raise UserError(
        f"context '{context.name}' is of type {context.type}, which has no host to log in to",
        code="usage",
        hint="yurt context list shows the types",
    )
