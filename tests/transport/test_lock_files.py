"""Lock files: two processes never hold one lock, also while files are removed; only files that nobody needs are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from yurt.transport import lock_files, sockets

HOLDER = """
import os, sys, time
from yurt.transport import sockets
file, inside, until = sys.argv[1], sys.argv[2], time.monotonic() + 2
held = 0
while time.monotonic() < until:
    lock = sockets.lock(file)
    if lock is None:
        continue
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
    held += 1
    os.unlink(inside)
    os.close(lock)
print(held)
"""


def test_one_holder_while_files_are_removed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLDER, str(tmp_path / "0a.slot0"), str(tmp_path / "inside")]
    holders = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _each in range(3)]
    removed = 0
    while any(each.poll() is None for each in holders):
        before = _inode(tmp_path / "0a.slot0")
        lock_files.collect(tmp_path, age=0)
        removed += before is not None and _inode(tmp_path / "0a.slot0") != before
    counts = [int(each.communicate()[0] or 0) for each in holders]
    assert [each.returncode for each in holders] == [0, 0, 0] and sum(counts) > 10 and removed


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def test_what_is_removed(tmp_path: Path) -> None:
    old = ("0a.lock", "0a.slot0", "0b.lock", "0c.slot0", "0c.kept", "other.txt", "page-1.lock")
    for name in (*old, "0d.lock"):
        (tmp_path / name).touch()
    for name in old:
        os.utime(tmp_path / name, (time.time() - 100_000,) * 2)
    (tmp_path / "0b").touch()  # the socket of an open connection
    lock = sockets.lock(str(tmp_path / "0c.slot0"))
    assert lock is not None and sockets.lock(str(tmp_path / "0c.slot0")) is None
    lock_files.collect(tmp_path)
    left = ["0b", "0b.lock", "0c.kept", "0c.slot0", "0d.lock", "other.txt", "page-1.lock"]
    assert sorted(each.name for each in tmp_path.iterdir()) == left
    os.close(lock)
    lock_files.collect(tmp_path)
    assert not (tmp_path / "0c.slot0").exists()
