"""Code on a host, without a run: only what changed travels, as one file; the checkout is there or not there."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends import scripts
from yurt.backends.answers import MakeParcel
from yurt.errors import UnreachableError
from yurt.hosts import Host
from yurt.hosts.base import refusal

HAVE, PLAIN = "have", "plain"
CUT, NO_GIT, NO_BASE = 45, 46, 47
"""What receive_code returns when the input ended early, where there is no git, and where the base is missing."""

ASK = 'have_code "$1" "$2" && echo have || known_code "$1"'
RECEIVE = 'receive_code "$@"'


class ShellCode:
    """The code of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def ensure(self, project_folder: str, tree: str, make: MakeParcel, *, timeout: float = 600) -> int:
        """After a cut nothing half-done is ever used: it is completed by the next call."""
        receiver = scripts.text("receive.sh") + "\n"
        known: Sequence[str] = self._host.run(receiver + ASK, project_folder, tree).text.split()
        if HAVE in known:
            return 0
        travelled = 0
        for _attempt in range(3):
            parcel = make(known)
            words = (project_folder, parcel.kind, tree, parcel.base, str(len(parcel.content)))
            received = self._host.run(receiver + RECEIVE, *words, stdin=parcel.content, timeout=timeout)
            travelled += len(parcel.content)
            if received.code == 0:
                return travelled
            if received.code not in (NO_GIT, NO_BASE):
                break
            known = (PLAIN,) if received.code == NO_GIT else ()
        if received.code == CUT:
            raise UnreachableError(
                f"{self._host.name}: the code did not arrive whole",
                code="connection-lost",
                hint="repeat the command: it is safe to",
            )
        raise refusal(self._host.name, "the code could not be written", received.errors)
