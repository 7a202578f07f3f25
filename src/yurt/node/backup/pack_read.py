"""Reads a pack from the disk: a program expands it while its checksum is computed."""

import errno
import io
import os
import subprocess
import tempfile
import threading
import zlib
from typing import IO, AbstractSet, Dict, Optional, Tuple, cast

from yurt.node.backup import programs
from yurt.node.backup.errors import BackupError, DamagedError, from_os
from yurt.node.backup.manifest import Pack
from yurt.node.backup.pipes import PIECE, Pieces, enlarge
from yurt.node.backup.progress import Progress
from yurt.node.backup.tar_headers import Damaged, Member, members, pick

EXTRACT = ["-x", "-f", "-", "--no-same-owner", "-p"]


def list_pack(backups: str, pack: Pack, progress: Progress) -> Tuple[str, Dict[bytes, Member]]:
    """Return the checksum of a pack and the files in it by name, after reading all of it.

    DamagedError if it is damaged. An empty `sum` stands for a pack that was just written: then its own size and the
    checksum that the compression program added to the content are compared.
    """
    with tempfile.TemporaryFile() as complaints, _Reading(backups, pack, complaints, progress) as reading:
        summing = threading.Thread(target=reading.add_up, daemon=True)
        summing.start()
        try:
            enlarge(reading.output)
            found = {each.name: each for each in members(Pieces(reading.output).read)}
        except (Damaged, ValueError, IndexError):
            raise DamagedError(reading.path) from None
        finally:
            summing.join()
        return reading.check(), found


def extract(
    backups: str, pack: Pack, names: AbstractSet[bytes], target: bytes, progress: Progress, *, acls: bool = True
) -> None:
    """Extract the regular files of these names from a pack into a folder; nothing else that is in it.

    DamagedError if the pack is damaged: the folder is then unusable.
    """
    with tempfile.TemporaryFile() as complaints, _Reading(backups, pack, complaints, progress) as reading:
        summing = threading.Thread(target=reading.add_up, daemon=True)
        summing.start()
        command = [*programs.tar(acls=acls), *EXTRACT]
        extractor = programs.start(command, subprocess.PIPE, subprocess.DEVNULL, complaints, target)
        assert extractor.stdin is not None
        try:
            enlarge(reading.output)
            enlarge(extractor.stdin.fileno())
            with io.BufferedWriter(cast("io.RawIOBase", extractor.stdin), PIECE) as pipe:
                pick(Pieces(reading.output).read, names, pipe.write)
            code = extractor.wait()
        except (Damaged, ValueError, IndexError):
            raise DamagedError(reading.path) from None
        except BrokenPipeError:
            code = extractor.wait() or 1
        finally:
            programs.stop([extractor])
            summing.join()
        if code and reading.is_intact():
            raise BackupError("cannot extract %s: %s" % (reading.path, programs.said(complaints)))
        reading.check()


class _Reading:
    """A program that expands a pack; this process reads the same file."""

    def __init__(self, backups: str, pack: Pack, complaints: IO[bytes], progress: Progress) -> None:
        self.path = os.path.join(backups, pack.name)
        self.pack = pack
        self.progress = progress
        self._failure: Optional[BackupError] = None
        self._sum = ""
        self._size = 0
        compression = programs.of_pack(pack.name)
        try:
            with open(self.path, "rb") as stream:
                self._process = programs.start(
                    [compression.program, *compression.expand], stream.fileno(), subprocess.PIPE, complaints
                )
        except FileNotFoundError:
            raise DamagedError(self.path, "missing") from None
        except OSError as error:
            raise from_os(error, "read the pack %s" % self.path) from None
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()

    def __enter__(self) -> "_Reading":
        return self

    def __exit__(self, *_: object) -> None:
        programs.stop([self._process])

    def add_up(self) -> None:
        """Compute size and checksum of the file."""
        checksum = 0
        try:
            with open(self.path, "rb", 0) as stream:
                pieces = Pieces(stream.fileno())
                piece = pieces.read()
                while piece:
                    checksum = zlib.crc32(piece, checksum)
                    self._size += len(piece)
                    self.progress.add(len(piece))
                    piece = pieces.read()
            self._sum = "%08x" % checksum
        except OSError as error:
            lost = error.errno == errno.EIO
            self._failure = DamagedError(self.path) if lost else from_os(error, "read the pack %s" % self.path)

    def is_intact(self) -> bool:
        return self._failure is None and self._size == self.pack.size and self.pack.sum in ("", self._sum)

    def check(self) -> str:
        """Return the checksum; BackupError if the pack was not read completely and right."""
        if self._failure is not None:
            raise self._failure
        if self._process.wait() or not self.is_intact():
            raise DamagedError(self.path)
        return self._sum
