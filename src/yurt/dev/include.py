"""The line in ~/.ssh/config that includes yurt's ssh configuration: propose, write or decline it."""

from __future__ import annotations

from yurt.config.paths import as_typed
from yurt.dev import ssh_config
from yurt.dev.ssh_config import Proposal, accept, decline, line, proposal

__all__ = ["Proposal", "accept", "config", "decline", "line", "proposal"]


def config() -> str:
    """Return the path of yurt's ssh configuration, as typed in a shell."""
    return as_typed(ssh_config.file())
