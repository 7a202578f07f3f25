"""Claims in shared folders: a hard link, or a renamed folder, which only one claimant can create."""

from __future__ import annotations

import os

from yurt.backends.job import script
from yurt.backends.shell import ownership
from yurt.hosts import Host
from yurt.hosts.base import refusal

PUT = 'umask 077; mkdir -p -- "$1" && cd "$1" && me=$4 && write_once "$2" "$3"'
HOLDER = 'cd "$1" 2> /dev/null && read_written "$2" || :'


class ShellClaims:
    """The claims of one context."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def put(self, folder: str, name: str, holder: str) -> str:
        answer = ownership.run(
            self._host, [folder], script.gate() + PUT, folder, name, holder, f"yurt.{os.urandom(4).hex()}"
        )
        if answer.code:
            raise refusal(self._host.name, f"cannot claim {name}", answer.errors)
        return answer.text.strip()

    def holder(self, folder: str, name: str) -> str:
        return ownership.run(self._host, [folder], script.gate() + HOLDER, folder, name).text.strip()
