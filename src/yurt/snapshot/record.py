"""Reads the files that changed since the last snapshot, and writes them and their folders to the store."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path

from yurt.snapshot import secrets, seen
from yurt.snapshot.collect import Files, unreadable

MANY = 100
"""From this number on, changed files go into a pack; fewer are written one by one."""

READERS = 4


def record(
    root: Path,
    store: Path,
    files: Files,
    last: seen.Seen,
    elsewhere: Mapping[bytes, bytes],
    *,
    allowed: Container[bytes] = (),
) -> tuple[str, int, list[bytes]]:
    """Write the tree of these files. Return its id, how many files it has, and which contain private keys.

    Files with private keys are left out, except those in `allowed`. The files are below `root`, except those in
    `elsewhere`, which has their real paths. The caller holds the lock of the store.
    """
    private = {
        name: each
        for name, each in (last.private or {}).items()
        if name in files and name not in allowed and seen.mark(files[name]) == each
    }
    files = {name: about for name, about in files.items() if name not in private} if private else files
    rows = {}
    for name, about in files.items():
        row = last.files.get(name)
        if row is not None and row[:5] == seen.mark(about):
            rows[name] = row
    if len(rows) == len(files) == len(last.files) and last.tree and private == last.private:
        return last.tree, len(rows), sorted(private)

    from yurt.snapshot import objects  # not needed if nothing changed

    changed = sorted(files.keys() - rows.keys())
    now, above = time.time_ns(), os.path.join(os.fsencode(root), b"")
    aside = store / "aside"
    if last.tree and files.keys() == last.files.keys() and private == last.private:
        same = _with_old_content(changed, files, last, lambda name: elsewhere.get(name) or above + name, now)
        if same is not None:
            if any(row[0] != seen.UNSETTLED for row in same.values()):  # else it is read again next time, too
                aside.mkdir(mode=0o700)
                seen.save(store, aside, seen.Seen(last.tree, rows | same, last.folders, private))
                aside.rmdir()
            return last.tree, len(files), sorted(private)
    aside.mkdir(mode=0o700)
    known = frozenset([*(row[5] for row in last.files.values()), *last.folders])
    pack = objects.Pack(store, aside, known) if len(changed) >= MANY else None
    writer = objects.Loose(store, aside, known) if pack is None else pack

    def read(name: bytes) -> None:
        try:
            found = _content(elsewhere.get(name) or above + name)
        except OSError as error:
            raise unreadable(name, error) from None
        if found is not None:  # else it was just removed
            about, content = found
            if name not in allowed and secrets.by_content(content):
                private[name] = seen.mark(about)
                return
            rows[name] = seen.row(about, writer.add(b"blob", content), now)

    _each(changed, read, threads=1 if pack is None else min(READERS, os.cpu_count() or 1))
    top, folders = objects.write_folders({name: (_mode(row[4]), row[5]) for name, row in rows.items()}, writer)
    if pack is not None:
        tree = pack.add(b"tree", top).hex()
        pack.finish(tree if len(changed) == len(files) else "")
    # The top folder is always a file of its own, and is written last: if it exists, its tree is complete.
    tree = objects.Loose(store, aside).add(b"tree", top).hex()
    seen.save(store, aside, seen.Seen(tree, rows, folders, private))
    aside.rmdir()
    return tree, len(rows), sorted(private)


def _with_old_content(
    names: Sequence[bytes], files: Files, last: seen.Seen, path: Callable[[bytes], bytes], now: int
) -> dict[bytes, seen.Row] | None:
    """Return the rows of files that look changed but have the content of the last snapshot; None if one does not.

    So it is with a file that was edited less than two seconds before the last snapshot, or touched since.
    """
    from yurt.snapshot import objects

    if len(names) >= MANY or any(files[name].st_size != last.files[name][3] for name in names):
        return None
    rows = {}
    for name in names:
        try:
            found = _content(path(name))
        except OSError:
            return None
        size, mode, id = last.files[name][3:]
        if found is None or found[0].st_size != size or _mode(found[0].st_mode) != _mode(mode):
            return None
        if objects.identify(b"blob", found[1]) != id:
            return None
        rows[name] = seen.row(found[0], id, now)
    return rows


def _each(names: Sequence[bytes], do: Callable[[bytes], None], *, threads: int) -> None:
    """Call `do` for all names, in any order; stop at the first failure."""
    left, failures = iter(names), list[BaseException]()

    def work() -> None:
        try:
            for name in left:  # shared iterator: each name goes to one thread only
                if failures:
                    break
                do(name)
        except BaseException as failure:
            failures.append(failure)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads - 1)]
    for worker in workers:
        worker.start()
    work()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]


def _content(path: bytes) -> tuple[os.stat_result, bytes] | None:
    """Return the content of a file, or the target of a link; None if it does not exist or is neither."""
    for _attempt in range(3):
        try:
            about = os.lstat(path)
            if stat.S_ISLNK(about.st_mode):
                return about, os.readlink(path)
            if not stat.S_ISREG(about.st_mode):
                return None
            # It may have been replaced in the meantime; opening a pipe must not block.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with io.FileIO(descriptor) as file:
                about = os.fstat(descriptor)
                return (about, file.readall()) if stat.S_ISREG(about.st_mode) else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL):  # a link became a file, or a file a link
                raise
    return None


def _mode(mode: int) -> int:
    """Return the git mode of a file."""
    if stat.S_ISLNK(mode):
        return 0o120000
    return 0o100755 if mode & stat.S_IXUSR else 0o100644
