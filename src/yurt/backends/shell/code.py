"""Uploads code without a run: only changes are sent, as one file; a checkout is complete or does not exist."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends import scripts
from yurt.backends.answers import MakeParcel
from yurt.backends.shell import ownership
from yurt.errors import UnreachableError
from yurt.hosts import Host
from yurt.hosts.base import refusal

HAVE, PLAIN = "have", "plain"
INCOMPLETE, NO_GIT, NO_BASE = 45, 46, 47
"""Exit codes of receive_code: the input ended early, the host has no git, the base is missing."""

ASK = 'have_code "$1" "$2" && echo have || known_code "$1"'
RECEIVE = 'receive_code "$@"'


class ShellCode:
    """The code of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def ensure(self, project_folder: str, tree: str, make: MakeParcel, *, timeout: float = 600) -> int:
        """See `Code.ensure`. An interrupted upload is never used; the next call uploads again."""
        receiver = scripts.receiver()
        known: Sequence[str] = ownership.run(
            self._host, [project_folder], receiver + ASK, project_folder, tree
        ).text.split()
        if HAVE in known:
            return 0
        sent = 0
        for _attempt in range(3):
            parcel = make(known)
            arguments = (project_folder, parcel.kind, tree, parcel.base, str(len(parcel.content)))
            received = ownership.run(
                self._host,
                [project_folder],
                receiver + RECEIVE,
                *arguments,
                make=True,
                stdin=parcel.content,
                timeout=timeout,
            )
            sent += len(parcel.content)
            if received.code == 0:
                return sent
            if received.code not in (NO_GIT, NO_BASE):
                break
            known = (PLAIN,) if received.code == NO_GIT else ()
        if received.code == INCOMPLETE:
            raise UnreachableError(
                f"{self._host.name}: the upload of the code is incomplete",
                code="connection-lost",
                hint="run the command again; it is safe to retry",
            )
        raise refusal(self._host.name, "cannot write the code", received.errors)
