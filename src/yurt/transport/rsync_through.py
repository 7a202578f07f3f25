"""Copies files between two hosts with rsync through this machine, which only connects them.

rsync on the first host gets a remote shell that only copies bytes between rsync and the ssh session of this machine.
The session is connected to an rsync server on the second host. The words of its command come from the first host and
are checked: never run as they are.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack

from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.transport import rsync_copy, rsync_process
from yurt.transport.base import TIMEOUT, refusal
from yurt.transport.guard import guarded
from yurt.transport.rsync_process import INCOMPATIBLE, LOST, PARTIAL, SILENCE, VANISHED, Strange
from yurt.transport.rsync_report import Report
from yurt.transport.side import SOURCE, Side

TARGET = "yurt-target"
"""Stands for the target in the command of the first host; the second host gets the real path from this machine."""

LINE = 4096
"""Maximum bytes of the line with the words of the server command."""

SEND = "exec 3<&0 4>&1 0< /dev/null 1>&2; " + SOURCE + 'export kind YURT_PIPE; exec "$@" "$s" yurt:' + TARGET

PIPE = (
    "exec 5<&0 6>&1; shift 2; "
    '{ printf "\\n%s %s" MARK "$kind"; printf " %s" "$@"; echo; } >&4; '
    "cat <&5 >&4 3<&- 6>&- & up=$!; exec 4>&- 5<&-; "
    "while IFS= read -r line <&3; do case $line in MARK) break ;; esac; done; "
    "cat <&3 >&6; kill $up 2> /dev/null; exit 0"
)
"""The remote shell: prints the words of the server command, then copies. It drops what the other login prints first."""

SERVE = 'printf "\\n%s\\n" MARK; exec rsync "$@"'

SHORT = re.compile(r"-[nlptrc]+e[0-9]*\.[A-Za-z]*")
"""The short options that a receiver may get, and the features of the sender's protocol. Not -s, which hides others."""

INFO = re.compile(r"--info=[A-Z]+[0-9](,[A-Z]+[0-9])*")


def server_words(line: str, mark: str, manner: Manner) -> tuple[bool, list[str]]:
    """Return whether the source is a folder, and the options of the rsync server, from the line of the first host.

    RefusedError unless they are those of a receiver with the requested options and the agreed target.
    """
    sent, kind, *words = [*line.split(" "), "", ""] if line.count(" ") < 4 else line.split(" ")
    agreed = sent == mark and kind in ("folder", "file") and words[:1] == ["--server"] and words[-2:] == [".", TARGET]
    chosen = _options(words[1:-2], manner) if agreed else None
    if not chosen:
        raise RefusedError(
            f"the source's rsync asks for an unexpected server command: {line[:200]!r}",
            code="site-refused",
            hint="copy it in two steps, with `yurt data get` and `yurt data put`",
        )
    return kind == "folder", chosen


def _options(words: Sequence[str], manner: Manner) -> list[str] | None:
    """Return the options if all of them are expected; else None."""
    long = {f"--timeout={SILENCE}", "--log-format=%i", "--log-format=X", "--partial"}
    long |= {"--delete", "--delete-during", "--delete-before"} if manner.delete else set()
    first, *rest = words or [""]
    letters = first.partition("e")[0]
    if not SHORT.fullmatch(first) or ("c" in letters, "n" in letters) != (manner.checksum, manner.dry):
        return None
    for at, word in enumerate(rest):
        folder = word == "--partial-dir" and rest[at + 1 : at + 2] == [PARTIAL]
        named = word == PARTIAL and at > 0 and rest[at - 1] == "--partial-dir"
        if not (folder or named or word in long or INFO.fullmatch(word)):
            return None
    return [first, *rest]


def through(source: Side, target: Side, manner: Manner, progress: Progress) -> Moved:
    """Copy a file or the content of a folder between two hosts through this machine, which only connects them.

    UnreachableError: the target keeps what it has, and the next call continues. Strange: one side has no rsync.
    """
    mark = f"yurt-begin-{os.urandom(8).hex()}"
    shell = "sh -c 'eval \"$YURT_PIPE\"' yurt"
    words = ["-rlpt" if word == "-rlpts" else word for word in rsync_copy.options(manner)]
    words += ["--no-s", "--blocking-io", "-e", shell]
    sending = f"YURT_PIPE={shlex.quote(PIPE.replace('MARK', mark))}; " + SEND
    first = rsync_copy.command(sending, source.path, *words)
    with source.host.session(time.monotonic() + TIMEOUT), target.host.session(time.monotonic() + TIMEOUT):
        return _Relay(source, target, manner, mark).run(first, progress)


class _Relay:
    """Two ssh processes, connected by pipes."""

    def __init__(self, source: Side, target: Side, manner: Manner, mark: str) -> None:
        self._source, self._target, self._manner, self._mark = source, target, manner, mark
        self._report = Report()
        self._errors: dict[int, list[str]] = {0: [], 1: []}

    def run(self, first: str, progress: Progress) -> Moved:
        out_read, out_write = os.pipe()
        back_read, back_write = os.pipe()
        processes: list[subprocess.Popen[bytes]] = []
        descriptors = [out_read, back_write]
        try:
            try:
                processes.append(_started(self._source.host.argv(first), back_read, out_write))
            finally:
                os.close(back_read)
                os.close(out_write)
            line = self._first_line(out_read)
            if not line:
                self._watch(processes, progress)
                raise self._problem(processes)
            folder, options = server_words(line, self._mark, self._manner)
            words = ["--server", *options, ".", self._target.path + ("/" if folder else "")]
            serve = self._target.guard + rsync_copy.RECEIVE + SERVE.replace("MARK", self._mark)
            second = rsync_copy.command(serve, self._target.path, "folder" if folder else "file", *words)
            processes.append(_started(self._target.host.argv(second), out_read, back_write))
            while descriptors:
                os.close(descriptors.pop())
            self._watch(processes, progress)
            code = processes[0].returncode
            if code not in (0, VANISHED):
                raise self._problem(processes)
            return rsync_copy.moved(self._report, code, "rsync through this machine")
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            for process in processes:
                rsync_process.stop(process)

    def _first_line(self, descriptor: int) -> str:
        """Return the line with the mark, byte by byte: what follows is for the other host. Empty if it never comes."""
        deadline, line = time.monotonic() + SILENCE, b""
        while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            byte = os.read(descriptor, 1)
            if not byte:
                return ""
            if byte != b"\n":
                line = (line + byte)[-LINE:]
            elif line.startswith(self._mark.encode()):
                return line.decode(errors="replace")
            else:
                line = b""
        raise UnreachableError(
            f"{self._source.host.name}: rsync did not start in time", code="timed-out", hint="run the command again"
        )

    def _watch(self, processes: Sequence[subprocess.Popen[bytes]], progress: Progress) -> None:
        """Read what both print until they have exited; stop them without traffic for too long, or if one is left."""
        try:
            with ExitStack() as guards:
                for each in processes:
                    guards.enter_context(guarded(-each.pid))
                self._follow(processes, progress)
        finally:
            for each in processes:
                rsync_process.stop(each)

    def _follow(self, processes: Sequence[subprocess.Popen[bytes]], progress: Progress) -> None:
        streams = {each.stderr.fileno(): number for number, each in enumerate(processes) if each.stderr is not None}
        held = dict.fromkeys(streams, b"")
        limit = SILENCE + 30.0
        while streams:
            ready = select.select(list(streams), [], [], limit)[0]
            if not ready:
                return
            for descriptor in ready:
                chunk = os.read(descriptor, 1 << 16)
                *lines, held[descriptor] = re.split(rb"[\r\n]+", held[descriptor] + chunk)
                for line in lines if chunk else [held[descriptor]]:
                    self._read(streams[descriptor], line.decode(errors="replace"), progress)
                if not chunk:
                    rsync_process.exited(processes[streams.pop(descriptor)], 10)
                    limit = 15.0

    def _read(self, number: int, line: str, progress: Progress) -> None:
        if not (number == 0 and self._report.read(line, progress)) and line:
            self._errors[number].append(line)

    def _problem(self, processes: Sequence[subprocess.Popen[bytes]]) -> YurtError:
        source, target = ("\n".join(self._errors[number]) for number in (0, 1))
        if "yurt: not-there" in source:
            return self._source.missing()
        if "yurt: no-rsync" in source or "yurt: no-rsync" in target:
            raise Strange
        known = rsync_copy.refused(self._target.host, self._target.path, target)
        if known is not None:
            return known
        full = rsync_process.no_space(f"{source}\n{target}")
        if full:
            return refusal(self._target.host.name, f"cannot write {self._target.path}", full)
        codes = [each.returncode for each in processes]
        if not self._report.files and any(code in INCOMPATIBLE for code in codes):
            raise Strange
        if any(code == 255 or code < 0 for code in codes) or codes[0] in LOST:
            if len(processes) == 1:
                return self._source.host.lost(255, source.encode(), begun=False)
            lost = self._target if codes[1] == 255 else self._source
            return rsync_process.interrupted(lost.host.name, "copied")
        why = rsync_process.first_error(f"{source}\n{target}", codes[0] or 0)
        return refusal(self._source.host.name, "some files could not be copied", why)


def _started(argv: Sequence[str], stdin: int, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True)
