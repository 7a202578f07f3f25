"""Writes one pack: tar piped into a compression program, hashed on the way to the disk."""

import hashlib
import os
import subprocess
import tempfile
import threading
from typing import IO, List, Tuple

from yurt.node.backup import programs, storage
from yurt.node.backup.errors import BackupError, from_os, shown
from yurt.node.backup.manifest import Pack
from yurt.node.backup.pipes import PIECE, enlarge
from yurt.node.backup.progress import Progress

CREATE = [
    *("-c", "-f", "-", "-H", "posix", "--pax-option=delete=atime,delete=ctime", "--no-recursion", "--sparse"),
    *("--hard-dereference", "--ignore-failed-read", "--owner=0", "--group=0", "--numeric-owner"),
    *("--null", "--no-unquote", "-T", "-"),
]
NAMES = 1000
DIFFERS = 1
"""The exit code of tar if a file changed while it was read."""


def write_pack(backups: str, name: str, folder: bytes, members: List[bytes], progress: Progress) -> Pack:
    """Write these files of a folder, named relative to it, into a new pack.

    A file that disappeared or cannot be read is not in the pack; one that changes meanwhile may be there in any state.
    On return the pack has its name and is on the disk. BackupError: nothing was left.
    """
    temporary = storage.aside(backups, name)
    compression = programs.of_pack(name)
    with tempfile.TemporaryFile() as complaints:
        started: List["subprocess.Popen[bytes]"] = []
        try:
            output = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                command = [*programs.tar(), *CREATE]
                archiver = programs.start(command, subprocess.PIPE, subprocess.PIPE, complaints, folder)
                started.append(archiver)
                feeder = threading.Thread(target=_feed, args=(archiver.stdin, members), daemon=True)
                feeder.start()
                assert archiver.stdout is not None
                enlarge(archiver.stdout.fileno())
                packer = programs.start(
                    [compression.program, *compression.compress],
                    archiver.stdout.fileno(),
                    subprocess.PIPE,
                    complaints,
                )
                started.append(packer)
                archiver.stdout.close()
                assert packer.stdout is not None
                size, checksum = _copy(packer.stdout.fileno(), output, progress)
                if archiver.wait() not in (0, DIFFERS) or packer.wait():
                    program = compression.program if packer.wait() else "tar"
                    raise BackupError("cannot write %s: %s: %s" % (name, program, programs.said(complaints)))
                os.fsync(output)
            finally:
                os.close(output)
            storage.place(temporary, os.path.join(backups, name))
        except OSError as error:
            storage.remove(temporary)
            raise from_os(error, "write the pack %s in %s" % (name, shown(backups))) from None
        except BaseException:
            storage.remove(temporary)
            raise
        finally:
            programs.stop(started)
    return Pack(name, size, checksum, 0, 0)


def _feed(pipe: IO[bytes], members: List[bytes]) -> None:
    """Pass names to tar. If it ends early, its exit code tells why."""
    try:
        with pipe:
            for start in range(0, len(members), NAMES):
                pipe.write(b"".join(b"./%s\0" % each for each in members[start : start + NAMES]))
    except (OSError, ValueError):
        pass


def _copy(source: int, target: int, progress: Progress) -> Tuple[int, str]:
    """Copy a pipe to a file; return size and sha256."""
    enlarge(source)
    digest = hashlib.sha256()
    size = 0
    while True:
        piece = os.read(source, PIECE)
        if not piece:
            return size, digest.hexdigest()
        digest.update(piece)
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]
        size += len(piece)
        progress.add(len(piece))
