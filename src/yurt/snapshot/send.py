"""Brings a snapshot to a host: only what changed travels, as one file; the checkout is there or not there.

On the host a project's folder holds `code.git` (every object sent so far) and `snapshots/TREE`, one
read-only checkout per tree. A checkout appears by a rename, so whatever has that name is complete.
"""

from __future__ import annotations

from importlib.resources import files

from yurt.errors import UnreachableError
from yurt.hosts import Host
from yurt.hosts.base import refusal
from yurt.snapshot import git
from yurt.snapshot.tree import Snapshot

ASK = """\
cd "$1" 2> /dev/null || exit 0
[ -d "snapshots/$2" ] && touch -c "snapshots/$2" && echo have && exit 0
command -v git > /dev/null 2>&1 || { echo plain && exit 0; }
ls -t snapshots 2> /dev/null | head -n 20
"""

HAVE, PLAIN = "have", "plain"
NO_GIT = 46


def send(host: Host, snapshot: Snapshot, folder: str, *, timeout: float = 600) -> int:
    """Have the snapshot checked out in `folder` on the host; returns how many bytes of code travelled.

    May be repeated, and two may do it at once. After a cut nothing half-done is ever used: it is
    completed by the next call.
    """
    answer = host.run(ASK, folder, snapshot.tree)
    words = answer.text.split()
    if words[:1] == [HAVE]:
        return 0
    if words[:1] != [PLAIN]:
        base = next((tree for tree in words if known(snapshot, tree)), "")
        content = pack(snapshot, base)
        received = host.run(receiver(), folder, snapshot.tree, base, str(len(content)), stdin=content, timeout=timeout)
        if received.code == 0:
            return len(content)
        if received.code != NO_GIT:
            raise _failure(host, received.errors, received.code)
    content = archive(snapshot)
    received = host.run(receiver("tar"), folder, snapshot.tree, str(len(content)), stdin=content, timeout=timeout)
    if received.code:
        raise _failure(host, received.errors, received.code)
    return len(content)


def _failure(host: Host, errors: str, code: int) -> Exception:
    if code == 45:
        return UnreachableError(
            f"{host.name}: the code did not arrive whole", code="answer-lost", hint="repeat the command: it is safe to"
        )
    return refusal(host.name, "the code could not be written", errors)


def receiver(kind: str = "git") -> str:
    """The script that takes a pack (or a tar file) on its input and makes the checkout."""
    return files("yurt.snapshot").joinpath(f"receive_{kind}.sh").read_text()


def known(snapshot: Snapshot, tree: str) -> bool:
    """Whether this machine's store has a tree that a host says it has."""
    if len(tree) != 40 or any(letter not in "0123456789abcdef" for letter in tree):
        return False
    return git.succeeds(["cat-file", "-e", f"{tree}^{{tree}}"], own=snapshot.store)


def pack(snapshot: Snapshot, base: str = "") -> bytes:
    """The objects of a snapshot as one pack, without those of `base`."""
    wanted = snapshot.tree + "\n" + (f"^{base}\n" if base else "")
    arguments = ["pack-objects", "--stdout", "--revs", "--thin", "--quiet", "--delta-base-offset", "--compression=1"]
    if not base:  # nothing to be like: looking for likenesses would cost more than it saves
        arguments.append("--window=0")
    return git.call(arguments, folder=snapshot.store, own=snapshot.store, stdin=wanted.encode())


def archive(snapshot: Snapshot) -> bytes:
    """The files of a snapshot as a tar file, for a host without git."""
    return git.call(["archive", "--format=tar", snapshot.tree], folder=snapshot.store, own=snapshot.store)
