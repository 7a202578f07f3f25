"""Writes one pack: tar piped into a compression program, which writes to the disk."""

import os
import signal
import subprocess
import tempfile
import threading
from typing import IO, List

from yurt.node.backup import programs, storage
from yurt.node.backup.errors import FULL, BackupError, from_os, shown
from yurt.node.backup.pipes import enlarge
from yurt.node.backup.progress import INTERVAL, Progress

CREATE = [
    *("-c", "-f", "-", "-H", "posix", "--pax-option=delete=atime,delete=ctime", "--no-recursion", "--sparse"),
    *("--hard-dereference", "--ignore-failed-read", "--owner=0", "--group=0", "--numeric-owner"),
    *("--null", "--no-unquote", "-T", "-"),
]
NAMES = 1000
DIFFERS = 1
"""The exit code of tar if a file changed while it was read."""


def write_pack(backups: str, name: str, folder: bytes, members: List[bytes], progress: Progress) -> int:
    """Write these files of a folder, named relative to it, into a new pack; return its size.

    A file that disappeared or cannot be read is not in the pack; one that changes at the same time may be there in
    any state. On return the pack has its name and is on the disk. BackupError: nothing was left.
    """
    temporary = storage.aside(backups, name)
    try:
        output = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _pipe(output, name, folder, members, progress)
            os.fsync(output)
            size = os.fstat(output).st_size
        finally:
            os.close(output)
        storage.place(temporary, os.path.join(backups, name))
    except OSError as error:
        storage.remove(temporary)
        raise from_os(error, "write the pack %s in %s" % (name, shown(backups))) from None
    except BaseException:
        storage.remove(temporary)
        raise
    return size


def _pipe(output: int, name: str, folder: bytes, members: List[bytes], progress: Progress) -> None:
    """Run tar and the compression program to their ends. BackupError if one fails."""
    compression = programs.of_pack(name)
    started: List["subprocess.Popen[bytes]"] = []
    with tempfile.TemporaryFile() as complaints:
        try:
            archiver = programs.start([*programs.tar(), *CREATE], subprocess.PIPE, subprocess.PIPE, complaints, folder)
            started.append(archiver)
            assert archiver.stdout is not None
            enlarge(archiver.stdout.fileno())
            threading.Thread(target=_feed, args=(archiver.stdin, members), daemon=True).start()
            command = [compression.program, *compression.compress]
            packer = programs.start(command, archiver.stdout.fileno(), output, complaints)
            started.append(packer)
            archiver.stdout.close()
            while True:
                try:
                    packer.wait(INTERVAL)
                    break
                except subprocess.TimeoutExpired:
                    progress.reach(os.fstat(output).st_size)
            if archiver.wait() not in (0, DIFFERS) or packer.returncode:
                raise _failure(name, compression.program, packer.returncode, archiver.returncode, complaints)
        finally:
            programs.stop(started)


def _failure(name: str, program: str, packed: int, archived: int, complaints: IO[bytes]) -> Exception:
    """Return why a pack could not be written. A killed program leaves the other one without a partner."""
    reason = programs.said(complaints)
    for number in FULL:
        if os.strerror(number) in reason:
            return OSError(number, os.strerror(number))
    if (archived < 0 and -archived != signal.SIGPIPE) or not packed:
        program, packed = "tar", archived
    reason = "it was killed by signal %d" % -packed if packed < 0 else reason
    return BackupError("cannot write the pack %s: %s failed: %s" % (name, program, reason))


def _feed(pipe: IO[bytes], members: List[bytes]) -> None:
    """Pass names to tar. If it ends early, its exit code tells why."""
    try:
        with pipe:
            for start in range(0, len(members), NAMES):
                pipe.write(b"".join(b"./%s\0" % each for each in members[start : start + NAMES]))
    except (OSError, ValueError):
        pass
