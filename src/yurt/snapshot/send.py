"""Brings a snapshot to a host: only what changed travels, as one file; the checkout is there or not there.

What happens on the host is in receive.sh: functions, so that code can arrive in one round trip with whatever
else is to be done there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from yurt.errors import RefusedError, UnreachableError
from yurt.hosts import Host
from yurt.hosts.base import refusal
from yurt.model import layout
from yurt.snapshot import git
from yurt.snapshot.tree import Snapshot, distrust

HAVE, PLAIN = "have", "plain"
CUT, NO_GIT, NO_BASE = 45, 46, 47
"""What receive_code returns when the input ended early, where there is no git, and where the base is missing."""

ASK = 'have_code "$1" "$2" && echo have || known_code "$1"'
RECEIVE = 'receive_code "$@"'


class Code(msgspec.Struct, frozen=True):
    """A snapshot as it travels. `base` is the tree it goes on from, or empty."""

    kind: Literal["git", "tar"]
    tree: str
    base: str
    content: bytes

    @property
    def words(self) -> tuple[str, str, str, str]:
        """The arguments of receive_code after the project's folder; `content` is its standard input."""
        return self.kind, self.tree, self.base, str(len(self.content))


def send(host: Host, snapshot: Snapshot, folder: str, *, timeout: float = 600) -> int:
    """Have the snapshot checked out in `folder` on the host; returns how many bytes of code travelled.

    May be repeated, and two may do it at once. After a cut nothing half-done is ever used: it is
    completed by the next call.
    """
    known: Sequence[str] = host.run(receiver() + ASK, folder, snapshot.tree).text.split()
    if HAVE in known:
        return 0
    travelled = 0
    for _attempt in range(3):
        code = code_for(snapshot, known)
        received = host.run(receiver() + RECEIVE, folder, *code.words, stdin=code.content, timeout=timeout)
        travelled += len(code.content)
        if received.code == 0:
            return travelled
        if received.code not in (NO_GIT, NO_BASE):
            break
        known = (PLAIN,) if received.code == NO_GIT else ()
    if received.code == CUT:
        raise UnreachableError(
            f"{host.name}: the code did not arrive whole", code="answer-lost", hint="repeat the command: it is safe to"
        )
    raise refusal(host.name, "the code could not be written", received.errors)


@cache
def receiver() -> str:
    """The functions have_code, known_code, receive_code and collect_code, to be put before a script."""
    return layout.fill_in(Path(__file__).with_name("receive.sh").read_text())


def code_for(snapshot: Snapshot, known: Sequence[str]) -> Code:
    """The snapshot for a host where known_code gave these words. Without any, all of it travels.

    RefusedError: this machine has it not, or no longer.
    """
    if not is_known(snapshot, snapshot.tree):
        raise _absent(snapshot)
    if PLAIN in known:
        return Code("tar", snapshot.tree, "", archive(snapshot))
    base = next((tree for tree in known if is_known(snapshot, tree)), "")
    return Code("git", snapshot.tree, base, difference(snapshot, base) if base else everything(snapshot))


def is_known(snapshot: Snapshot, tree: str) -> bool:
    """Whether this machine's store has a tree that a host says it has."""
    from yurt.snapshot import objects

    try:
        return len(tree) == 40 and objects.loose(snapshot.store, bytes.fromhex(tree)).exists()
    except ValueError:
        return False


def everything(snapshot: Snapshot) -> bytes:
    """All objects of a snapshot: the length of a pack's index in eleven bytes, the index, the pack.

    With its index a pack needs no work on the host, where making one would take longer than the way there.
    """
    index = snapshot.store / "objects" / "pack" / f"pack-{snapshot.tree}.idx"
    if index.exists():  # it was made as a whole
        return _together(snapshot, index)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="yurt-") as folder:
        wanted = f"{snapshot.tree}\n".encode()
        # Nothing to be like: looking for likenesses would cost more than it saves.
        name = _git(snapshot, "pack-objects", "--revs", "--quiet", "--window=0", f"{folder}/pack", stdin=wanted)
        return _together(snapshot, Path(folder, f"pack-{name.decode().strip()}.idx"))


def _together(snapshot: Snapshot, index: Path) -> bytes:
    import hashlib

    about, pack = index.read_bytes(), index.with_suffix(".pack").read_bytes()
    if hashlib.sha1(memoryview(pack)[:-20], usedforsecurity=False).digest() != pack[-20:]:
        raise _broken(snapshot, "a pack is damaged")
    return b"".join((b"%-10d\n" % len(about), about, pack))


def difference(snapshot: Snapshot, base: str) -> bytes:
    """The objects of a snapshot that `base` has not, as one pack."""
    wanted = f"{snapshot.tree}\n^{base}\n".encode()
    return _git(
        snapshot, "pack-objects", "--stdout", "--revs", "--thin", "--quiet", "--delta-base-offset", stdin=wanted
    )


def archive(snapshot: Snapshot) -> bytes:
    """The files of a snapshot as a tar file, for a host without git."""
    return _git(snapshot, "archive", "--format=tar", snapshot.tree)


def _git(snapshot: Snapshot, *arguments: str, stdin: bytes = b"") -> bytes:
    try:
        return git.call(arguments, folder=snapshot.store, own=snapshot.store, stdin=stdin)
    except RefusedError as error:
        raise (_broken(snapshot, error.message) if error.code == "git-failed" else error) from None


def _broken(snapshot: Snapshot, what: str) -> RefusedError:
    """The store lacks what it should have, as after a disk failed: the next snapshot makes it anew."""
    if not is_known(snapshot, snapshot.tree):  # made anew already, and this one was not taken again
        return _absent(snapshot)
    distrust(snapshot.store)
    return RefusedError(
        f"yurt's copy of the code in {snapshot.store} is damaged: {what}",
        code="git-failed",
        hint="repeat the command: the copy will be made anew",
    )


def _absent(snapshot: Snapshot) -> RefusedError:
    return RefusedError(
        f"the code {snapshot.tree[:12]} is no longer on the site, and not on this machine either",
        code="code-missing",
        hint="repeat it on the machine that took the snapshot",
    )
