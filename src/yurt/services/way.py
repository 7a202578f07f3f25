"""How this machine reaches the node of a service: by ssh through the login node, or by a step of its job."""

from __future__ import annotations

from pathlib import Path

from yurt import private
from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.config import facts as recorded_facts
from yurt.contexts import connect, node_keys
from yurt.errors import UnreachableError
from yurt.model.site_words import NodeName
from yurt.services.status import ServiceStatus
from yurt.store import Entry


class Way:
    """The way to one node. ssh is several times as fast as a step, but not every site allows it."""

    def __init__(self, entry: Entry, status: ServiceStatus, folder: Path) -> None:
        """Ask the node for its host keys, and for the token of the service, in one request. UnreachableError.

        `folder` is private, and for the host keys.
        """
        (self._placement,) = entry.placements
        self._context = entry.run.context
        self._hosts = folder / "known_hosts"
        self.token = ""
        """The password of the program, which is on the disk of its node."""
        self._ssh_node = NodeName.read(entry.status.node) if self._may_use_ssh() else None
        if status.token or self._ssh_node:
            self._ask(status.token)

    def _may_use_ssh(self) -> bool:
        context = contexts.site(self._context)
        facts = None if kind_of(context.type).here else recorded_facts.load(context)
        return facts is not None and (facts.node is None or facts.node.ssh)

    def _ask(self, token: str) -> None:
        first = 'cat "$1" && echo' if token else ":"
        words = ["sh", "-c", f"{first}; {node_keys.READ if self._ssh_node else ':'}", "sh", token]
        asked = connect.named_backend(self._context).exec.ask(self._placement, words)
        if token:
            self.token, _end, _keys = asked.out.decode(errors="replace").partition("\n")
            if not (self.token.isalnum() and self.token.isascii()):
                reason = asked.err.decode(errors="replace").strip().rpartition("\n")[2]
                raise UnreachableError(f"{self._context}: the token cannot be read: {reason}", code="connection-lost")
        if self._ssh_node is not None:
            hosts = node_keys.known_hosts(self._ssh_node, asked.out)
            private.write(self._hosts, hosts)
            self._ssh_node = self._ssh_node if hosts else None

    def program(self, words: str) -> list[str]:
        """Return the program of this machine that runs an sh command on the node. UnreachableError."""
        runner = connect.named_backend(self._context).exec
        if self._ssh_node is not None:
            return runner.hop(self._ssh_node, self._hosts, words, prompt=False)
        return runner.relay(self._placement, words)

    def has_other(self) -> bool:
        """Return whether there is another way, and use that from now on."""
        before, self._ssh_node = self._ssh_node, None
        return before is not None
