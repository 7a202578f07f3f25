"""Forwards ports of nodes through the connection to the host."""

from __future__ import annotations

from contextlib import AbstractContextManager

from yurt.model.site_words import NodeName
from yurt.transport.base import Host


class ShellForward:
    """Port forwarding of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def forward(self, node: NodeName | None, port: int) -> AbstractContextManager[int]:
        return self._host.forward(node, port)
