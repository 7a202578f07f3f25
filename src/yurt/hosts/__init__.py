"""Where commands run: this machine, a host reached by ssh, a compute node behind one."""

from __future__ import annotations

from yurt.errors import UserError
from yurt.hosts.base import Answer, Host
from yurt.hosts.local import LocalHost
from yurt.hosts.ssh import SshHost
from yurt.model.context import Context

__all__ = ["Answer", "Host", "LocalHost", "SshHost", "host_of"]


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
