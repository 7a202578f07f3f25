"""How many commands and connections this process has sent to each context in the last minute."""

from __future__ import annotations

from yurt.transport.counts import commands, connections

__all__ = ["commands", "connections"]
