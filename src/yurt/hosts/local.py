"""This machine as a host."""

from __future__ import annotations

from yurt.hosts.base import Host


class LocalHost(Host):
    """Runs commands on this machine as the current user."""

    name = "this machine"

    def argv(self, command: str) -> list[str]:
        return ["sh", "-c", command]
