"""Where commands run: this machine, or a host reached by ssh."""

from __future__ import annotations

from yurt.hosts.base import Answer, Host
from yurt.hosts.local import LocalHost
from yurt.hosts.ssh import SshHost

__all__ = ["Answer", "Host", "LocalHost", "SshHost"]
