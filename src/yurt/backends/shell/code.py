"""Uploads code without a run: only changes are sent, as one file; a checkout is complete or does not exist."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from yurt.backends import scripts
from yurt.backends.answers import CodeParcel, MakeParcel, Uploaded
from yurt.backends.shell import ownership
from yurt.errors import UnreachableError
from yurt.transport.base import Host, refusal
from yurt.transport.pace import PIECE

HAVE, PLAIN = "have", "plain"
INCOMPLETE, NO_GIT, NO_BASE = 45, 46, 47
"""Exit codes of receive_code: the input ended early, the host has no git, the base is missing."""

WRONG = 48
"""Exit code of receive_large: what arrived is not what was sent."""

ASK = 'have_code "$1" "$2" && echo have || known_code "$1"'
RECEIVE = 'receive_code "$@"'
RECEIVE_LARGE = 'receive_large "$@"'


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
            raise _incomplete(self._host.name)
        raise refusal(self._host.name, "cannot write the code", received.errors)

    def upload(
        self, project_folder: str, tree: str, parcel: CodeParcel, *, resume: bool, moved: Callable[[int], None]
    ) -> Uploaded:
        """See `Code.upload`."""
        arguments = (project_folder, parcel.kind, tree, parcel.base, str(len(parcel.content)), parcel.digest)
        for again in (resume, False):
            received = ownership.send(
                self._host,
                [project_folder],
                scripts.receiver() + scripts.text("receive_large.sh") + RECEIVE_LARGE,
                *(*arguments, os.urandom(4).hex(), "yes" if again else "", str(PIECE)),
                content=parcel.content,
                resume=again,
                moved=moved,
            )
            if received.code != WRONG:
                break
        if received.code in (0, NO_GIT, NO_BASE):
            return {0: "complete", NO_GIT: "no git", NO_BASE: "no base"}[received.code]  # type: ignore[return-value]
        if (
            (received.code in (INCOMPLETE, WRONG) or received.killed)
            and "No space" not in received.errors
            and "quota" not in received.errors.lower()
        ):
            raise _incomplete(self._host.name)
        raise refusal(self._host.name, "cannot submit the run", received.errors)


def _incomplete(name: str) -> UnreachableError:
    return UnreachableError(
        f"{name}: the upload of the code is incomplete",
        code="connection-lost",
        hint="run the command again; it is safe to retry",
    )
