"""Brings a folder of a host here by rsync, over the host's own connection. A transfer that was cut goes on.

A link that falls silent is given up: by clean.py, which sees the bytes; and here, should that fail too.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO

from yurt.errors import UnreachableError, YurtError, here_is_full
from yurt.hosts import clean
from yurt.hosts.base import TIMEOUT, Host, refusal
from yurt.hosts.ssh import SshHost
from yurt.model.files import Brought, Pick, Progress

PARTIAL = ".yurt-partial"
"""Where the beginnings of files are kept, beside the files: nothing half-done stands under its name."""

SILENCE = 60
"""Seconds without a byte after which a transfer is given up."""

VANISHED = 24
CUT = (10, 12, 14, 20, 30, 35, 255)
"""Exit codes of rsync: files vanished meanwhile; after a lost connection."""

STRANGE = (1, 2, 4, 5, 126, 127)
"""Exit codes of rsync: the two sides do not understand each other, or one is not there."""


class Strange(Exception):
    """The two sides cannot speak rsync with each other."""


@cache
def usable() -> bool:
    """Whether this machine has an rsync that knows what is asked of it: not macOS's own."""
    if shutil.which("rsync") is None:
        return False
    done = subprocess.run(["rsync", "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    found = re.match(rb"rsync +version v?(\d+)\.(\d+)", done.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= (3, 1)


def bring(
    host: Host,
    source: str,
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    names: Sequence[str] = (),
    silence: int = SILENCE,
) -> Brought:
    """Bring what is in a folder there into a folder here. Files that are here already are not sent again.

    `names` are folders in that folder, or links to folders: what is in these comes, and nothing else.
    UnreachableError: what has arrived is kept, and the next call goes on from there. Strange: nothing was brought.
    """
    for attempt in itertools.count(1):
        with host.session(time.monotonic() + TIMEOUT):
            transfer = _Transfer(host, source, target, pick, names=names, silence=silence)
            code = transfer.run(progress)
        if code in CUT and not transfer.begun and host.retry(transfer.errors.encode(), attempt):
            continue
        problem = transfer.problem(code)
        if problem is not None:
            raise problem
        return transfer.brought(code)
    raise AssertionError("not reached")


class _Transfer:
    """One call of rsync, and everything it started."""

    def __init__(
        self, host: Host, source: str, target: Path, pick: Pick, *, names: Sequence[str], silence: int
    ) -> None:
        self._host, self._target, self._pick, self._silence = host, target, pick, silence
        self._source, self._names = source, names
        self._files = self._size = self._matched = 0
        self._below: dict[str, list[int]] = {name: [0, 0, 0] for name in names}
        self._late = False
        self._signs = b""
        self.errors = ""

    @property
    def begun(self) -> bool:
        """Whether anything was started on the host."""
        return not isinstance(self._host, SshHost) or clean.BEGUN in self._signs

    def _argv(self) -> list[str]:
        words = ["rsync", "-rlpts", f"--timeout={self._silence}", f"--partial-dir={PARTIAL}", "--no-human-readable"]
        words += ["--info=progress2,stats2", "--out-format=yurt %i %l %n", "--outbuf=L", "--from0", "--exclude-from=-"]
        if self._pick.only:
            words += ["-m", "--include=*/", *(f"--include={glob}" for glob in self._pick.only), "--exclude=*"]
        if self._names:
            # Each goes by its name below the dot; -ii tells of what is here already, too.
            words += ["-R", "--no-implied-dirs", "-ii"]
        there = [f"{self._source}/./{name}/" for name in self._names] or [f"{self._source}/"]
        if isinstance(self._host, SshHost):
            words += ["-e", shlex.join([sys.executable, "-I", "-S", clean.__file__])]
            there = [f"{'' if at else 'there'}:{path}" for at, path in enumerate(there)]
        return [*words, *there, f"{self._target.absolute()}/"]

    def run(self, progress: Progress) -> int:
        """Run it to its end, however it ends; returns its exit code."""
        import tempfile

        hear, life = os.pipe()
        os.set_blocking(hear, False)
        environment = {**os.environ, "LC_ALL": "C"}
        if isinstance(self._host, SshHost):
            mark = f"yurt-begin-{os.urandom(8).hex()}"
            *ssh, _command = self._host.argv("")
            environment["YURT_CLEAN"] = json.dumps([life, mark, self._silence, *ssh])
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as excludes:
            excludes.write(b"".join(_literal(path) + b"\0" for path in self._pick.without))
            excludes.seek(0)
            try:
                # In a session of its own: all it started is ended with it.
                process = subprocess.Popen(
                    self._argv(),
                    stdin=excludes,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=environment,
                    pass_fds=[life],
                    start_new_session=True,
                )
            except BaseException:
                os.close(hear)
                raise
            finally:
                os.close(life)
            try:
                assert process.stdout is not None
                self._watch(process.stdout, hear, progress)
                _ended(process, 30)
            finally:
                _end(process)
                with contextlib.suppress(BlockingIOError):
                    self._signs += os.read(hear, 4096)
                os.close(hear)
                errors.seek(0)
                self.errors = errors.read().decode(errors="replace")
        return 255 if self._late else process.returncode

    def _watch(self, output: IO[bytes], hear: int, progress: Progress) -> None:
        """Read what rsync says until it has no more to say, or nothing at all moves."""
        held = b""
        descriptors = [output.fileno(), hear]
        limit = self._silence + 30
        while True:
            ready = select.select(descriptors, [], [], limit if isinstance(self._host, SshHost) else None)[0]
            if not ready:
                self._late = True
                return
            if hear in ready:
                signs = os.read(hear, 4096)
                self._signs += signs
                if not signs:
                    descriptors.remove(hear)
            if output.fileno() in ready:
                chunk = os.read(output.fileno(), 1 << 16)
                *lines, held = re.split(rb"[\r\n]+", held + chunk)
                for line in lines if chunk else [held]:
                    self._read(line.decode(errors="replace"), progress)
                if not chunk:
                    return

    def _read(self, line: str, progress: Progress) -> None:
        now = re.match(r" *(\d+) +(\d+)%", line)
        if now is not None:
            progress(int(now[1]), int(now[2]))
        elif item := re.match(r"yurt (.)[fL].{9} (\d+) ([^/]*)", line):
            self._count(sent=item[1] in "<>c", size=int(item[2]), name=item[3])
        elif line.startswith("Number of files: "):
            self._matched = sum(int(count) for count in re.findall(r"(?:reg|link): (\d+)", line))
        elif found := re.match(r"Total transferred file size: (\d+)", line):
            self._size = int(found[1])

    def _count(self, *, sent: bool, size: int, name: str) -> None:
        self._files += sent
        if name in self._below:
            files, bytes_, matched = self._below[name]
            self._below[name] = [files + sent, bytes_ + size * sent, matched + 1]

    def brought(self, code: int) -> Brought:
        gone = self._vanished() if code == VANISHED else set()
        below = {
            name: Brought(files=files, size=size, matched=matched, vanished=name in gone)
            for name, (files, size, matched) in self._below.items()
        }
        return Brought(
            files=self._files, size=self._size, matched=self._matched, vanished=code == VANISHED, below=below
        )

    def _vanished(self) -> set[str]:
        """The folders something vanished from; all of them if that is not said."""
        start = re.escape(f"{self._source}/")
        found = [
            re.search(rf'"{start}(?:\./)?([^/"]+)', line) for line in self.errors.splitlines() if "vanished" in line
        ]
        names = {each[1] for each in found if each is not None}
        return names if names and len(names) <= len(found) and None not in found else set(self._names)

    def problem(self, code: int) -> YurtError | None:
        """What it means that it ended so; None if all is well. Raises Strange."""
        if code in (0, VANISHED):
            return None
        said = [line for line in self.errors.splitlines() if line.startswith("rsync")]
        full = [line for line in said if re.search("no space left|quota exceeded", line, re.IGNORECASE)]
        if full and "[sender]" not in full[0]:
            return here_is_full(self._target, full[0])
        if clean.MUTE in self._signs or (code in STRANGE and not self._files):
            raise Strange
        if code in CUT and not self.begun:
            return self._host.lost(255, self.errors.encode(), begun=False)
        if code in CUT:
            return cut(self._host)
        why = said[0].partition(": ")[2] if said else f"rsync ended with {code}"
        return refusal(self._host.name, "not everything could be fetched", why)


def cut(host: Host) -> UnreachableError:
    return UnreachableError(
        f"{host.name}: the connection was lost; what has arrived is kept",
        code="connection-lost",
        hint="repeat the command: it goes on from there",
    )


def _literal(path: str) -> bytes:
    """A path as a pattern that means only it. A backslash is one only in a pattern that has something to escape."""
    special = any(letter in path for letter in "*?[")
    return os.fsencode("/" + (re.sub(r"([*?\[\\])", r"\\\1", path) if special else path))


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a program's end, and leave its number taken: what it started still goes by it."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all it started; politely first, so that it keeps what has arrived."""
    if not _ended(process, 0):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        _ended(process, 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
