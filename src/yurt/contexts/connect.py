"""Creates the backend of a context."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from yurt.backends.kinds import SLURM, kind_of
from yurt.backends.registry import backend_of, files_of, host_of
from yurt.clocks import clocks
from yurt.config import contexts, paths
from yurt.contexts.facts import facts_of
from yurt.errors import UnreachableError
from yurt.model.context import Context
from yurt.transport.base import Host
from yurt.transport.ssh import SshHost

if TYPE_CHECKING:
    from yurt.backends.base import Backend, Files


def backend(context: Context) -> Backend:
    """Return the backend of a context. It does not contact the site until it is used."""
    return backend_of(context, accounting=lambda: facts_of(context).accounting, slots=paths.data_home() / "slots")


def named_backend(name: str) -> Backend:
    return backend(contexts.site(name))


def named_files(name: str) -> Files:
    """Return the files of a context's runs. Imports less than its backend."""
    return files_of(contexts.site(name), slots=paths.data_home() / "slots")


def responding_backend(name: str, *, scheduler: bool = False, alone: bool = True, urgent: bool = False) -> Backend:
    """Return the backend of a context. UnreachableError: see `check_responds`."""
    context = contexts.named(name)
    found = backend(context)
    check_responds(context, found, scheduler=scheduler, alone=alone, urgent=urgent)
    return found


def check_responds(
    context: Context, backend: Backend | Host, *, scheduler: bool = False, alone: bool = True, urgent: bool = False
) -> None:
    """UnreachableError if the site did not respond in the last minute, so that it is not asked again now.

    A command about this site `alone` asks it again, once, and waits only for a moment; see `Host.limit`. So does any
    command if it is `urgent`. `scheduler`: Slurm must respond, too.
    """
    if kind_of(context.type).here:
        return
    for part in ("", SLURM) if scheduler else ("",):
        since = backend.silent_since(part)
        if since is None or not 0 <= time.time() - since < clocks().rest:
            continue
        if urgent or (alone and not backend.gave_up(part)):
            continue
        at = time.strftime("%H:%M:%S", time.localtime(since))
        if part:
            raise UnreachableError(
                f"{backend.name}: Slurm did not respond at {at}",
                code="slurm-not-responding",
                hint="the controller may be down; run the command again later",
            )
        raise UnreachableError(
            f"{backend.name} did not respond at {at}",
            code="not-responding",
            hint=f"run `yurt login {backend.name}` to try again now",
        )


def is_here(name: str) -> bool:
    """Whether the runs of a context are on this machine."""
    return kind_of(contexts.named(name).type).here


def slots() -> dict[str, int]:
    """Return the processes of the runs on this machine that have a slot or wait for one."""
    from yurt.backends.local import waiter

    folder = paths.data_home() / "slots"
    if not folder.is_dir():
        return {}
    return {ticket["run"]: ticket["pid"] for ticket in waiter.tickets(str(folder)).values()}


def real_host(context: Context) -> str:
    """Return the name of a context's login node after the user's ssh configuration (`ssh -G`). Does not connect."""
    host = ssh_host(context)
    if host is None:
        return ""
    named = host.destination.removeprefix("ssh://").rpartition("@")[2]
    return host.master.settings().get("hostname") or named


def ssh_host(context: Context) -> SshHost | None:
    """Return the login node of a context; None if the context does not use ssh."""
    host = host_of(context)
    return host if isinstance(host, SshHost) else None
