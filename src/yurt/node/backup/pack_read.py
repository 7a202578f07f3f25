"""Reads a pack back: compares its sha256 while a decompression program expands it."""

import hashlib
import os
import subprocess
import tempfile
import threading
from typing import IO, Dict, List, Optional

from yurt.node.backup import programs
from yurt.node.backup.errors import BackupError, from_os
from yurt.node.backup.manifest import Pack, damaged
from yurt.node.backup.pipes import PIECE, enlarge
from yurt.node.backup.progress import Progress
from yurt.node.backup.tar_headers import Damaged, Member, members

EXTRACT = ["-x", "-f", "-", "--no-same-owner", "-p"]


def list_pack(backups: str, pack: Pack, progress: Progress) -> Dict[bytes, Member]:
    """Return the files in a pack by name, after reading all of it from the disk. BackupError if it is damaged."""
    with tempfile.TemporaryFile() as complaints:
        reading = _Reading(backups, pack, complaints, progress)
        feeder = threading.Thread(target=reading.feed, daemon=True)
        try:
            feeder.start()
            output = reading.output()
            found = {each.name: each for each in members(lambda: os.read(output, PIECE))}
            reading.process.wait()
        except (Damaged, ValueError, IndexError):
            raise damaged(reading.path) from None
        finally:
            if reading.process.poll() is None:
                reading.process.kill()
            feeder.join()
            programs.stop([reading.process])
        reading.check()
    return found


def extract(backups: str, pack: Pack, target: bytes, progress: Progress) -> None:
    """Extract all files of a pack into a folder. BackupError if the pack is damaged: the folder is then unusable."""
    with tempfile.TemporaryFile() as complaints:
        reading = _Reading(backups, pack, complaints, progress)
        started: List["subprocess.Popen[bytes]"] = [reading.process]
        try:
            output = reading.process.stdout
            assert output is not None
            enlarge(output.fileno())
            command = [*programs.tar(), *EXTRACT]
            extractor = programs.start(command, output.fileno(), subprocess.DEVNULL, complaints, target)
            started.append(extractor)
            output.close()
            reading.feed()
            code = extractor.wait()
            reading.process.wait()
        finally:
            programs.stop(started)
        if code and reading.failure is None:
            raise BackupError("cannot extract %s: %s" % (reading.path, programs.said(complaints)))
        reading.check()


class _Reading:
    """A decompression program that is fed with a pack."""

    def __init__(self, backups: str, pack: Pack, complaints: IO[bytes], progress: Progress) -> None:
        self.path = os.path.join(backups, pack.name)
        self.pack = pack
        self.progress = progress
        self.failure: Optional[BackupError] = None
        compression = programs.of_pack(pack.name)
        command = [compression.program, *compression.expand]
        self.process = programs.start(command, subprocess.PIPE, subprocess.PIPE, complaints)

    def output(self) -> int:
        assert self.process.stdout is not None
        enlarge(self.process.stdout.fileno())
        return self.process.stdout.fileno()

    def feed(self) -> None:
        """Pass the whole pack to the program and remember what was wrong with it."""
        digest = hashlib.sha256()
        size = 0
        pipe = self.process.stdin
        assert pipe is not None
        try:
            enlarge(pipe.fileno())
            with open(self.path, "rb", 0) as stream:
                piece = stream.read(PIECE)
                while piece:
                    digest.update(piece)
                    size += len(piece)
                    self._pass(pipe, piece)
                    self.progress.add(len(piece))
                    piece = stream.read(PIECE)
            if size != self.pack.size or digest.hexdigest() != self.pack.sum:
                self.failure = damaged(self.path)
        except FileNotFoundError:
            self.failure = BackupError("the pack %s is missing" % self.path)
        except OSError as error:
            self.failure = from_os(error, "read the pack %s" % self.path)
        finally:
            pipe.close()

    def _pass(self, pipe: IO[bytes], piece: bytes) -> None:
        """Write to the program. It may have ended early over a damaged pack: the checksum will tell."""
        view = memoryview(piece)
        try:
            while view:
                view = view[os.write(pipe.fileno(), view) :]
        except (BrokenPipeError, ValueError):
            pass

    def check(self) -> None:
        """Raise BackupError if the pack was not read completely and right."""
        if self.failure is not None:
            raise self.failure
        if self.process.returncode:
            raise damaged(self.path)
