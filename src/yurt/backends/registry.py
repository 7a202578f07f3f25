"""Creates the backend and the host of a context. The backend's modules are imported on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.backends import scripts
from yurt.backends.kinds import SLURM
from yurt.errors import no_kubernetes
from yurt.model.context import Context
from yurt.transport.base import Host
from yurt.transport.local import LocalHost
from yurt.transport.ssh import SshHost

if TYPE_CHECKING:
    from yurt.backends.base import Backend, Files


def backend_of(context: Context, *, accounting: Callable[[], bool], slots: Path) -> Backend:
    """Return the backend of a context.

    `slots` is the folder for tickets of local runs; `accounting` returns whether a cluster has accounting.
    """
    if context.type == "local":
        from yurt.backends.local.backend import LocalBackend

        return LocalBackend(host_of(context), slots)
    if context.type == "slurm":
        from yurt.backends.slurm.backend import SlurmBackend

        return SlurmBackend(host_of(context), accounting)
    raise no_kubernetes(context.name)


def files_of(context: Context, *, slots: Path) -> Files:
    """Return the files of a context's runs, without the rest of its backend if that is possible."""
    if context.type == "slurm":
        from yurt.backends.shell.files import ShellFiles

        return ShellFiles(host_of(context))
    return backend_of(context, accounting=lambda: False, slots=slots).files


def host_of(context: Context) -> Host:
    """Return the host that runs a context's commands: its login node, or this machine."""
    if context.type == "local":
        return LocalHost()
    if context.type == "slurm" and context.slurm_url:
        host = SshHost(context.name, context.slurm_url, context.ssh_options, context.ssh_command)
        host.prelude = f"{scripts.plain_slurm()}yurt_patience={max(1, round(host.limit(SLURM)))}\n"
        return host
    raise no_kubernetes(context.name)
