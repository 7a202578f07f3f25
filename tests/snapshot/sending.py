"""Uploads snapshots to hosts as a backend does."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.backends import scripts
from yurt.backends.answers import CodeParcel
from yurt.backends.shell.code import ShellCode
from yurt.snapshot import Snapshot
from yurt.snapshot.send import Code, code_for
from yurt.transport.base import Host


def send(host: Host, snapshot: Snapshot, folder: str, *, timeout: float = 600) -> int:
    """Check out a snapshot in a folder of a host; return the number of bytes uploaded."""

    def make(known: Sequence[str]) -> CodeParcel:
        code = code_for(snapshot, known)
        return CodeParcel(kind=code.kind, base=code.base, content=code.content)

    return ShellCode(host).ensure(folder, snapshot.tree, make, timeout=timeout)


def receiver() -> str:
    return scripts.receiver()


def words(code: Code) -> tuple[str, str, str, str]:
    """Arguments of receive_code after the project's folder."""
    return code.kind, code.tree, code.base, str(len(code.content))
