"""Fetches a folder of a host with rsync over the host's connection. An interrupted transfer can be continued.

A connection without traffic times out: clean.py watches the bytes, and this module is the fallback.
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
"""The folder for partial files, beside the files, so that every file under its own name is complete."""

SILENCE = 60
"""Seconds without traffic after which a transfer times out."""

VANISHED = 24
LOST = (10, 12, 14, 20, 30, 35, 255)
"""rsync exit codes: files vanished during the transfer; the connection was lost."""

INCOMPATIBLE = (1, 2, 4, 5, 126, 127)
"""rsync exit codes: the two rsync programs are incompatible, or one is missing."""


class Strange(Exception):
    """The rsync programs on this machine and the host cannot work together."""


@cache
def usable() -> bool:
    """Whether this machine has rsync 3.1 or later; the one that macOS ships is too old."""
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
    """Fetch the content of a folder on the host into a local folder. Unchanged files are not sent again.

    `names` are folders, or links to folders, in that folder: if given, only their content is fetched.
    UnreachableError: received files are kept, and the next call continues. Strange: nothing was fetched.
    """
    for attempt in itertools.count(1):
        with host.session(time.monotonic() + TIMEOUT):
            transfer = _Transfer(host, source, target, pick, names=names, silence=silence)
            code = transfer.run(progress)
        if code in LOST and not transfer.begun and host.retry(transfer.errors.encode(), attempt):
            continue
        problem = transfer.problem(code)
        if problem is not None:
            raise problem
        return transfer.brought(code)
    raise AssertionError("not reached")


class Total:
    """The total size of a transfer, from the bytes so far and rsync's whole percentages."""

    def __init__(self) -> None:
        self._least, self._most = 0.0, float("inf")

    def after(self, size: int, percent: int) -> int:
        """Return the total after `size` bytes; 0 if it is unknown. Each percentage narrows it down."""
        if percent == 0:
            return 0
        least, most = size * 100 / (percent + 1), size * 100 / percent
        self._least, self._most = max(self._least, least), min(self._most, most)
        if self._least > self._most:  # rsync has found more files
            self._least, self._most = least, most
        return max(size, round(self._most))


class _Transfer:
    """One rsync process and its children."""

    def __init__(
        self, host: Host, source: str, target: Path, pick: Pick, *, names: Sequence[str], silence: int
    ) -> None:
        self._host, self._target, self._pick, self._silence = host, target, pick, silence
        self._source, self._names = source, names
        self._files = self._size = self._matched = self._replaced = 0
        self._below: dict[str, list[int]] = {name: [0, 0, 0] for name in names}
        self._late = False
        self._total = Total()
        self._signs = b""
        self.errors = ""

    @property
    def begun(self) -> bool:
        """Whether rsync started on the host."""
        return not isinstance(self._host, SshHost) or clean.BEGUN in self._signs

    def _argv(self) -> list[str]:
        argv = [
            "rsync",
            "-rlpts",
            "--chmod=ug-s",
            f"--timeout={self._silence}",
            f"--partial-dir={PARTIAL}",
            "--no-human-readable",
        ]
        argv += ["--info=progress2,stats2", "--out-format=yurt %i %l %n", "--outbuf=L", "--from0", "--exclude-from=-"]
        argv += ["--backup", "--suffix=~"] if self._pick.backup else []
        argv += ["-m"] if self._pick.only or self._pick.files_only else []
        if self._pick.only:
            argv += ["--include=*/", *(f"--include={glob}" for glob in self._pick.only), "--exclude=*"]
        if self._names:
            # -R keeps the path after the dot; -ii also lists files that are already up to date.
            argv += ["-R", "--no-implied-dirs", "-ii"]
        sources = [f"{self._source}/./{name}/" for name in self._names] or [f"{self._source}/"]
        if isinstance(self._host, SshHost):
            argv += ["-e", shlex.join([sys.executable, "-I", "-S", clean.__file__])]
            sources = [f"{'' if at else 'host'}:{path}" for at, path in enumerate(sources)]
        return [*argv, *sources, f"{self._target.absolute()}/"]

    def run(self, progress: Progress) -> int:
        """Run rsync, wait for it, and return its exit code; 255 if it timed out."""
        import tempfile

        status_read, status_write = os.pipe()
        os.set_blocking(status_read, False)
        environment = {**os.environ, "LC_ALL": "C"}
        if isinstance(self._host, SshHost):
            mark = f"yurt-begin-{os.urandom(8).hex()}"
            *ssh, _command = self._host.argv("")
            environment["YURT_CLEAN"] = json.dumps([status_write, mark, self._silence, *ssh])
        with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as excludes:
            excludes.write(b"".join(_literal(path) + b"\0" for path in self._pick.without))
            excludes.seek(0)
            try:
                # A new session, so that its children can be killed with it.
                process = subprocess.Popen(
                    self._argv(),
                    stdin=excludes,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=environment,
                    pass_fds=[status_write],
                    start_new_session=True,
                )
            except BaseException:
                os.close(status_read)
                raise
            finally:
                os.close(status_write)
            try:
                assert process.stdout is not None
                self._watch(process.stdout, status_read, progress)
                _exited(process, 30)
            finally:
                _stop(process)
                with contextlib.suppress(BlockingIOError):
                    self._signs += os.read(status_read, 4096)
                os.close(status_read)
                errors.seek(0)
                self.errors = errors.read().decode(errors="replace")
        return 255 if self._late else process.returncode

    def _watch(self, output: IO[bytes], status: int, progress: Progress) -> None:
        """Read rsync's output until it closes, or until there is no traffic for too long."""
        held = b""
        descriptors = [output.fileno(), status]
        limit = self._silence + 30
        while True:
            ready = select.select(descriptors, [], [], limit if isinstance(self._host, SshHost) else None)[0]
            if not ready:
                self._late = True
                return
            if status in ready:
                signs = os.read(status, 4096)
                self._signs += signs
                if not signs:
                    descriptors.remove(status)
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
            progress(int(now[1]), self._total.after(int(now[1]), int(now[2])))
        elif item := re.match(r"yurt (.)([fL].{9}) (\d+) ([^/]*)", line):
            sent = item[1] in "<>c"
            self._replaced += sent and not item[2].endswith("+++++++++")
            self._count(sent=sent, size=int(item[3]), name=item[4])
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
        incomplete = self._vanished() if code == VANISHED else set()
        below = {
            name: Brought(files=files, size=size, matched=matched, vanished=name in incomplete)
            for name, (files, size, matched) in self._below.items()
        }
        return Brought(
            files=self._files,
            size=self._size,
            matched=self._matched,
            vanished=code == VANISHED,
            replaced=self._replaced,
            below=below,
        )

    def _vanished(self) -> set[str]:
        """Return the folders from which files vanished; all folders if rsync does not name them."""
        start = re.escape(f"{self._source}/")
        found = [
            re.search(rf'"{start}(?:\./)?([^/"]+)', line) for line in self.errors.splitlines() if "vanished" in line
        ]
        names = {each[1] for each in found if each is not None}
        return names if names and len(names) <= len(found) and None not in found else set(self._names)

    def problem(self, code: int) -> YurtError | None:
        """Return the error for an exit code; None on success. Raises Strange."""
        if code in (0, VANISHED):
            return None
        errors = [line for line in self.errors.splitlines() if line.startswith("rsync")]
        full = [line for line in errors if re.search("no space left|quota exceeded", line, re.IGNORECASE)]
        if full and "[sender]" not in full[0]:
            return here_is_full(self._target, full[0])
        if clean.NO_OUTPUT in self._signs or (code in INCOMPATIBLE and not self._files):
            raise Strange
        if code in LOST and not self.begun:
            return self._host.lost(255, self.errors.encode(), begun=False)
        if code in LOST:
            return _interrupted(self._host)
        why = errors[0].partition(": ")[2] if errors else f"rsync ended with exit code {code}"
        return refusal(self._host.name, "some files could not be fetched", why)


def _interrupted(host: Host) -> UnreachableError:
    return UnreachableError(
        f"{host.name}: lost connection during the transfer; files fetched so far are kept",
        code="connection-lost",
        hint="run the command again; it fetches the remaining files",
    )


def _literal(path: str) -> bytes:
    """Return an rsync pattern that matches only this path. A backslash is an escape only in patterns with *, ? or [."""
    special = any(character in path for character in "*?[")
    return os.fsencode("/" + (re.sub(r"([*?\[\\])", r"\\\1", path) if special else path))


def _exited(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process to exit without reaping it: its process group id must stay valid for its children."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process and its children. SIGTERM comes first, so that rsync keeps partial files."""
    if not _exited(process, 0):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        _exited(process, 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
