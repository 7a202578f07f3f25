"""Creates the backend of a context."""

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
    """Return the backend of a context. It does not contact the site until it is used."""
    return backend_of(context, accounting=lambda: facts_of(context).accounting, slots=paths.data_home() / "slots")


def named_backend(name: str) -> Backend:
    return backend(contexts.site(name))


def slots() -> set[str]:
    """Return the runs on this machine that have a slot or wait for one."""
    from yurt.backends.local import waiter

    folder = paths.data_home() / "slots"
    return {ticket["run"] for ticket in waiter.tickets(str(folder)).values()} if folder.is_dir() else set()


def ssh_host(context: Context) -> SshHost | None:
    """Return the login node of a context; None if the context does not use ssh."""
    host = host_of(context)
    return host if isinstance(host, SshHost) else None
