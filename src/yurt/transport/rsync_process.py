"""One rsync process and its children: starts it, watches its traffic, and reads what it prints.

A connection without traffic times out: this module counts the bytes, or clean.py if it copies them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import select
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import IO, TypeVar

from yurt import stop_on_signal
from yurt.clocks import clocks
from yurt.errors import UnreachableError
from yurt.model.files import Progress
from yurt.model.progress import report_slow, waiting
from yurt.transport import clean, rsync_shell, spawn
from yurt.transport.base import TIMEOUT, Host, not_requested
from yurt.transport.guard import guarded
from yurt.transport.rsync_report import Report
from yurt.transport.spawn import Child
from yurt.transport.ssh import SshHost

PARTIAL = ".yurt-partial"
"""The folder for partial files, beside the files, so that every file under its own name is complete."""

SILENCE = 60
"""Seconds without traffic after which a transfer times out."""

OWN_MODES = ["-rlts", "--chmod=ugo=rwX"]
"""Options for a transfer to this machine: what comes gets the modes that the user's umask gives to new files, and what
was there keeps its own. Programs stay executable."""

VANISHED = 24
LOST = (10, 12, 14, 20, 30, 35, 255)
"""rsync exit codes: files vanished during the transfer; the connection was lost."""

INCOMPATIBLE = (1, 2, 4, 5, 126, 127)
"""rsync exit codes: the two rsync programs are incompatible, or one is missing."""

SMALL = 256
"""More bytes than the keep-alive messages of rsync until it times out; these do not prove that the site responds."""

PAUSE = 0.05
"""Seconds between two looks at rsync's output, which may be several lines for each of thousands of files."""

TERM, KILL = 15, 9
"""Signals; the module signal is slow to import."""

GRACE = 5.0
"""Seconds that the remote shell has to exit after rsync."""


class Strange(Exception):
    """The rsync programs on this machine and the host cannot work together."""


@cache
def usable() -> bool:
    """Whether this machine has rsync 3.1 or later; the one that macOS ships is too old."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if not any(os.access(f"{folder or '.'}/rsync", os.X_OK) for folder in folders):
        return False
    # On Linux, an older one would fail as incompatible; it costs a process to ask.
    return sys.platform == "linux" or _version() >= (3, 1)


def refuses_other_files() -> bool:
    """Whether this machine's rsync accepts only those files from a host that it requested, as of version 3.2.5.

    Before, a host could send files that --include and --exclude do not select, or that are not below a named folder.
    """
    return _version() >= (3, 2, 5)


@cache
def _version() -> tuple[int, ...]:
    import subprocess  # slow to import

    done = subprocess.run(["rsync", "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    found = re.match(rb"rsync +version v?(\d+)\.(\d+)\.?(\d*)", done.stdout)
    return tuple(int(each or b"0") for each in found.groups()) if found is not None else ()


class Process:
    """One rsync process of this machine and its children."""

    def __init__(self, host: Host, report: Report, *, silence: int = SILENCE) -> None:
        self._host, self._silence, self._report = host, silence, report
        self._direct = isinstance(host, SshHost) and rsync_shell.is_direct(host)
        self._late = self._silent = False
        self._ssh_code = ""
        self.signs = b""
        self.errors = ""
        self.begun = not isinstance(host, SshHost)
        """Whether rsync started on the host."""

    @property
    def without_output(self) -> bool:
        """Whether the command on the host failed and printed nothing."""
        if not self._direct:
            return clean.NO_OUTPUT in self.signs
        return rsync_shell.NOTHING in self.errors and self._ssh_code not in ("", "0", "255")

    @property
    def noisy(self) -> bool:
        """Whether the login of the host printed something before the output of rsync, so that nothing was copied."""
        return self._direct and rsync_shell.NOISY in self.errors

    def run(self, argv: Sequence[str], progress: Progress, *, stdin: bytes = b"") -> int:
        """Run rsync, wait for it, and return its exit code; 255 if it timed out."""
        status_read, status_write = os.pipe()
        environment = {**os.environ, "LC_ALL": "C", **self._variables(status_write)}
        with _file() as errors, _file() as given:
            given.write(stdin)
            given.seek(0)
            try:
                started = spawn.start(argv, environment, given, errors, status_write)
            except BaseException:
                os.close(status_read)
                raise
            finally:
                os.close(status_write)
            return self._follow(started, status_read, errors, progress)

    def _variables(self, status: int) -> dict[str, str]:
        if not isinstance(self._host, SshHost):
            return {}
        return rsync_shell.variables(self._host, status, self._silence, direct=self._direct)

    def _follow(self, process: Child, status: int, errors: IO[bytes], progress: Progress) -> int:
        """Watch a process to its end, and return its exit code."""
        end = partial(stop, process)
        stop_on_signal.add(end)
        try:
            with guarded(-process.pid):
                self._watch(process, status, errors, progress)
            if not self._late:
                exited(process, 30)
            if self._direct and not self._late:
                self._read_signs(status)
        finally:
            end()
            stop_on_signal.remove(end)
            if not self._direct:
                self._read_signs(status)
            os.close(status)
            errors.seek(0)
            self._read_errors(errors.read().decode(errors="replace"))
        if self._silent:
            raise self._host.did_not_respond()
        if self.begun and not self._late:
            self._host.note_response()
        return 255 if self._late else process.wait()

    def _read_signs(self, status: int) -> None:
        """Read the signs of the remote shell, which ends soon after rsync and then closes this descriptor."""
        while select.select([status], [], [], GRACE)[0] and (signs := os.read(status, 4096)):
            self.signs += signs

    def _read_errors(self, errors: str) -> None:
        self.begun = self.begun or rsync_shell.MARK in errors or clean.BEGUN in self.signs
        words = (rsync_shell.RESPONDED, rsync_shell.MARK, rsync_shell.EXITED)
        lines = errors.splitlines(keepends=True)
        self.errors = "".join(line for line in lines if not any(word in line for word in words))
        self._ssh_code = errors.rpartition(rsync_shell.EXITED)[2].strip() if rsync_shell.EXITED in errors else ""

    def _has_responded(self, errors: IO[bytes]) -> bool:
        """Whether the host has executed the command that starts rsync."""
        words = os.pread(errors.fileno(), 1 << 16, 0) if self._direct else b""
        return self.begun or clean.BEGUN in self.signs or rsync_shell.RESPONDED.encode() in words

    def _watch(self, process: Child, status: int, errors: IO[bytes], progress: Progress) -> None:
        """Read rsync's output until it closes, or until there is no traffic for too long."""
        assert process.stdout is not None
        output = process.stdout.fileno()
        clean.enlarge(output)
        held, descriptors = b"", [output, *([] if self._direct else [status])]
        started = heard = time.monotonic()
        traffic, patience = 0, self._host.silence() or TIMEOUT
        told = stalled = False
        responded = self._has_responded(errors)
        while True:
            ready = select.select(descriptors, [], [], 1.0)[0]
            if status in ready:
                signs = os.read(status, 4096)
                self.signs += signs
                if not signs:
                    descriptors.remove(status)
            if output in ready:
                chunk = os.read(output, 1 << 16)
                held = self._read(held + chunk, progress)
                if not chunk:
                    self._read(held + b"\n", progress)
                    return
                exited(process, PAUSE)
            if self._direct and not ready:
                now = rsync_shell.traffic(process.pid) or 0
                if abs(now - traffic) > SMALL:  # fewer if one of the processes has ended
                    heard, traffic = time.monotonic(), now
            elif ready:
                heard = time.monotonic()
            responded = responded or self._has_responded(errors)
            slow = time.monotonic() - (heard if responded else started) > clocks().slow
            if slow and not responded and not told:
                told = True
                self._host.report_slow()
            if slow and responded and not stalled and isinstance(self._host, SshHost):
                stalled = True
                report_slow(waiting(f"data from {self._host.name}", self._silence))
            if not responded and time.monotonic() - started > patience:
                self._late = self._silent = True
                return
            limit = self._silence if self._direct else self._silence + 30
            if isinstance(self._host, SshHost) and time.monotonic() - heard > limit:
                self._late = True
                return

    def _read(self, output: bytes, progress: Progress) -> bytes:
        """Read the complete lines of rsync's output, but only the last of several reports of progress."""
        *lines, rest = output.replace(b"\r", b"\n").split(b"\n")
        last = max((at for at, line in enumerate(lines) if line.startswith(b" ")), default=-1)
        for at, line in enumerate(lines):
            if at == last or not line.startswith(b" "):
                self._report.read(line.decode(errors="replace"), progress)
        return rest


def _file() -> IO[bytes]:
    """Return a new file without a name."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("yurt"), "w+b")
    import tempfile  # slow to import

    return tempfile.TemporaryFile()


Attempt = TypeVar("Attempt", bound=Process)


def attempted(host: Host, run: Callable[[], tuple[int, Attempt]]) -> tuple[int, Attempt]:
    """Run a transfer over the host's connection; again if the connection had no session for it.

    Also again, in another way, if the login of the host prints something before each command.
    """
    for attempt in itertools.count(1):
        with host.session(time.monotonic() + TIMEOUT):
            code, process = run()
        if process.noisy and isinstance(host, SshHost):
            host.note_noisy()
        elif code not in LOST or process.begun or not host.retry(process.errors.encode(), attempt):
            return code, process
    raise AssertionError("not reached")


def first_error(errors: str, code: int) -> str:
    """Return why rsync failed, with the first path that it names."""
    lines = errors.splitlines()
    named = [line for line in lines if line.startswith(("rsync: ", "could not ", "cannot ", "symlink has "))]
    named = named or [line for line in lines if line.startswith("rsync")]
    if not named:
        return f"rsync ended with exit code {code}"
    path = re.match(r'rsync: .*?"(.+?)"(?: -> ".*")?(?: \(in .*?\))?(?: failed)?: (.+?)(?: \(\d+\))?$', named[0])
    return f"'{path[1]}': {path[2]}" if path else named[0].removeprefix("rsync: ").removeprefix("rsync error: ")


def check_requested(host: Host, errors: str) -> None:
    """RefusedError if rsync stopped because the host sent a file that was not requested."""
    found = re.search(r"^ERROR: rejecting (?:unrequested|excluded) file-list name: (.*)$", errors, re.MULTILINE)
    if found is not None:
        raise not_requested(host.name, found[1])


def no_space(errors: str) -> str:
    """Return what rsync printed about a full disk or quota; empty if there is none."""
    lines = [line for line in errors.splitlines() if line.startswith("rsync")]
    return next((line for line in lines if re.search("no space left|quota exceeded", line, re.IGNORECASE)), "")


def interrupted(name: str, what: str) -> UnreachableError:
    """Return the error for a connection that was lost during a transfer; `what`: fetched, uploaded, copied."""
    verb = {"fetched": "fetches", "uploaded": "uploads"}.get(what, "copies")
    return UnreachableError(
        f"{name}: lost connection during the transfer; files {what} so far are kept",
        code="connection-lost",
        hint=f"run the command again; it {verb} the remaining files",
    )


def exited(process: Child, seconds: float) -> bool:
    """Wait for a process to exit without reaping it: its process group id must stay valid for its children."""
    deadline = time.monotonic() + seconds
    handle = _handle(process.pid)
    try:
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if handle is None:
                time.sleep(0.005)
            else:
                select.select([handle], [], [], left)
        return True
    finally:
        if handle is not None:
            os.close(handle)


def _handle(pid: int) -> int | None:
    """Return a descriptor that is readable when a process has exited; None where the system has none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def stop(process: Child) -> None:
    """Stop a process and its children. SIGTERM comes first, so that rsync keeps partial files. Safe to repeat."""
    if process.returncode is not None:
        return
    if not exited(process, 0):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, TERM)
        exited(process, 5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, KILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
