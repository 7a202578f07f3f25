"""This machine as a host."""

from __future__ import annotations

from yurt.hosts.base import Host


class LocalHost(Host):
    """Commands run here, as the person who called yurt."""

    name = "this machine"

    def argv(self, command: str) -> list[str]:
        return ["sh", "-c", command]
