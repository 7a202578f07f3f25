"""Packs a snapshot for upload to a context: only what changed, as one file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from yurt.errors import RefusedError
from yurt.snapshot import git
from yurt.snapshot.tree import Snapshot, mark_damaged

PLAIN = "plain"
"""Listed by a context without git instead of its trees."""


class Code(msgspec.Struct, frozen=True):
    """A snapshot packed for upload. `base` is the tree that the pack builds on, or empty."""

    kind: Literal["git", "tar"]
    tree: str
    base: str
    content: bytes


def code_for(snapshot: Snapshot, known: Sequence[str]) -> Code:
    """Pack the snapshot for a context that has the trees `known`. If `known` is empty, everything is included.

    RefusedError: the snapshot is not on this machine.
    """
    if not is_known(snapshot, snapshot.tree):
        raise _absent(snapshot)
    if PLAIN in known:
        return Code("tar", snapshot.tree, "", archive(snapshot))
    base = next((tree for tree in known if is_known(snapshot, tree)), "")
    return Code("git", snapshot.tree, base, difference(snapshot, base) if base else everything(snapshot))


def is_known(snapshot: Snapshot, tree: str) -> bool:
    """Return whether the store on this machine contains a tree."""
    from yurt.snapshot import objects

    try:
        return len(tree) == 40 and objects.loose(snapshot.store, bytes.fromhex(tree)).exists()
    except ValueError:
        return False


def everything(snapshot: Snapshot) -> bytes:
    """Return all objects of a snapshot: the length of the pack index in eleven bytes, the index, the pack.

    The index is included because building it on the remote host would take longer than its upload.
    """
    index = snapshot.store / "objects" / "pack" / f"pack-{snapshot.tree}.idx"
    if index.exists():  # the snapshot was written as one complete pack
        return _with_index(snapshot, index)
    import tempfile

    _remove_leftovers(snapshot.store)
    # On the disk of the store: git renames the pack from there.
    with tempfile.TemporaryDirectory(prefix="upload-", dir=snapshot.store) as folder:
        wanted = f"{snapshot.tree}\n".encode()
        # Without a base, the search for deltas costs more than it saves.
        name = _git(snapshot, "pack-objects", "--revs", "--quiet", "--window=0", f"{folder}/pack", stdin=wanted)
        return _with_index(snapshot, Path(folder, f"pack-{name.decode().strip()}.idx"))


def _remove_leftovers(store: Path) -> None:
    """Remove what killed uploads left behind."""
    import shutil

    for each in store.glob("upload-*"):
        with contextlib.suppress(FileNotFoundError):  # the upload of another process has just ended
            if time.time() - each.stat().st_mtime > 86400:
                shutil.rmtree(each, ignore_errors=True)


def _with_index(snapshot: Snapshot, index: Path) -> bytes:
    import hashlib

    head, pack = index.read_bytes(), index.with_suffix(".pack").read_bytes()
    if hashlib.sha1(memoryview(pack)[:-20], usedforsecurity=False).digest() != pack[-20:]:
        raise _broken(snapshot, "a pack is damaged")
    return b"".join((b"%-10d\n" % len(head), head, pack))


def difference(snapshot: Snapshot, base: str) -> bytes:
    """Return the objects of a snapshot that are not in `base`, as one pack."""
    from yurt.snapshot import edit

    small = edit.difference(snapshot.store, snapshot.tree, base)
    if small is not None:
        return small
    wanted = f"{snapshot.tree}\n^{base}\n".encode()
    return _git(
        snapshot, "pack-objects", "--stdout", "--revs", "--thin", "--quiet", "--delta-base-offset", stdin=wanted
    )


def archive(snapshot: Snapshot) -> bytes:
    """Return the files of a snapshot as a tar file, for a host without git."""
    return _git(snapshot, "archive", "--format=tar", snapshot.tree)


def _git(snapshot: Snapshot, *arguments: str, stdin: bytes = b"") -> bytes:
    try:
        return git.call(arguments, folder=snapshot.store, own=snapshot.store, stdin=stdin)
    except RefusedError as error:
        raise (_broken(snapshot, error.message) if error.code == "git-failed" else error) from None


def _broken(snapshot: Snapshot, what: str) -> RefusedError:
    """Return the error for a store that lacks objects, as after a disk failure. The next snapshot builds it again."""
    if not is_known(snapshot, snapshot.tree):  # already built again, without this snapshot
        return _absent(snapshot)
    mark_damaged(snapshot.store)
    return RefusedError(
        f"the snapshot store {snapshot.store} is damaged: {what}",
        code="git-failed",
        hint="run the command again; yurt then rebuilds the store",
    )


def _absent(snapshot: Snapshot) -> RefusedError:
    return RefusedError(
        f"snapshot {snapshot.tree[:12]} is neither on the site nor on this machine",
        code="code-missing",
        hint="run the command on the machine that took the snapshot",
    )
