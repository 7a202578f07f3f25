"""The backend of a context, ready to use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yurt.backends.registry import backend_of, host_of
from yurt.config import contexts, paths
from yurt.hosts import SshHost
from yurt.model.context import Context
from yurt.sites.facts import facts_of

if TYPE_CHECKING:
    from yurt.backends.base import Backend


def backend(context: Context) -> Backend:
    """The backend of a context. It asks nothing of its site until it is used."""
    return backend_of(context, accounting=lambda: facts_of(context).accounting, slots=paths.data_home() / "slots")


def named_backend(name: str) -> Backend:
    return backend(contexts.named(name))


def slots() -> set[str]:
    """Runs on this machine that wait for a slot or have one."""
    from yurt.backends.local import waiter

    folder = paths.data_home() / "slots"
    return {ticket["run"] for ticket in waiter.tickets(str(folder)).values()} if folder.is_dir() else set()


def ssh_host(context: Context) -> SshHost | None:
    """The login host of a context; None for a context that needs no login."""
    host = host_of(context)
    return host if isinstance(host, SshHost) else None
