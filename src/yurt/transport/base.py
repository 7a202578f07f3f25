"""The contract of every host: run a script, stream its output, put a file, get a file.

Every operation may be retried. An operation that raises UnreachableError may or may not have taken effect.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from yurt.clocks import clocks, within
from yurt.errors import NotFoundError, RefusedError, UnreachableError, YurtError
from yurt.model.progress import report_slow, waiting
from yurt.model.site_words import Reading, whole
from yurt.transport import counts, queue_prefetch, wire
from yurt.transport.command import Silent
from yurt.transport.ssh_errors import RETRY
from yurt.transport.stream import Stream

if TYPE_CHECKING:
    from yurt.model.site_words import NodeName
    from yurt.transport.command import Command
    from yurt.transport.pace import Pace

LONGEST_NUMBER = 100
"""Bytes of a line with the size of a file."""

TIMEOUT = 60.0

LONG = 8000
"""Characters of a script from which on a host keeps it: shorter ones are sent in the time of one answer anyway."""

KILLED = rb"\bKilled\b|terminated by signal"
"""Messages of shells and xargs about a killed process; login nodes kill processes that use too many resources."""

PUT = """\
target=$1 mode=$2 size=$3
umask 077
case $target in */*) folder=${target%/*}/ ;; *) folder=./ ;; esac
mkdir -p -- "$folder" || exit 1
if [ -d "$target" ]; then echo "it is a folder" >&2 && exit 1; fi
part=$folder.yurt-put-$(uname -n)-$$
trap 'rm -f -- "$part"' EXIT
cat > "$part" && [ "$(wc -c < "$part")" -eq "$size" ] && chmod "$mode" -- "$part" && mv -f -- "$part" "$target"
"""

GET = """\
[ -f "$1" ] || exit 44
wc -c < "$1" && cat -- "$1"
"""


class Answer(msgspec.Struct, frozen=True):
    """The result of a script: its exit code and output, without login banners."""

    code: int
    out: bytes
    err: bytes
    noise: bytes = b""
    """What the dotfiles of the login printed before the script started."""
    seconds: float = 0.0
    """How long the script took."""

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")

    @property
    def errors(self) -> str:
        return self.err.decode(errors="replace").strip()

    @property
    def killed(self) -> bool:
        """Whether the script or one of its programs was killed; it may have done part of its work."""
        return self.code > 128 or re.search(KILLED, self.err) is not None


class Host(ABC):
    """A machine that runs scripts. Subclasses define how it is reached and what its failures mean."""

    name: str
    prelude = ""
    """What is executed before every script."""

    @abstractmethod
    def argv(self, command: str) -> list[str]:
        """Return the local command line that runs `command` in a shell on the host."""

    def reading(self) -> Reading:
        """Return a block for the parser of an answer. RefusedError if it cannot read the answer."""
        return Reading(self.name)

    def gnu(self) -> bool:
        """Whether the host has the tools of GNU; otherwise functions of scripts replace some of them."""
        return True

    def terminal(self, command: str) -> list[str]:
        """Return the local command line that runs `command` on the host in the user's terminal."""
        return self.argv(command)

    def relay(self, command: str) -> list[str]:
        """Return the local command line that runs `command` on the host, for as long as its streams are open."""
        return self.argv(command)

    def hop(self, node: NodeName, known_hosts: Path, command: str, *, prompt: bool, share: str = "") -> list[str]:
        """Return the local command line that runs `command` on a node behind the host, by the node's own sshd.

        `known_hosts` contains the node's host keys under its name. `prompt`: ssh may prompt the user. `share`: programs
        with the same text share a connection to the node.
        """
        del node, known_hosts, prompt, share
        return self.relay(command)

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        """Provide what a command needs while it runs, such as a connection. May raise YurtError."""
        del deadline
        yield

    @contextlib.contextmanager
    def forward(self, node: NodeName | None, port: int) -> Iterator[int]:
        """Forward a port of a node, reached from the host, to 127.0.0.1; yield the local port. None: the host's."""
        del node
        yield port

    def lost(self, returned: int, errors: bytes, *, begun: bool) -> YurtError:
        """Return the error for a script that started or not (`begun`) and whose exit code did not arrive."""
        output = errors.decode(errors="replace").strip().splitlines()
        reason = f"{output[-1]} (exit code {returned})" if output else f"exit code {returned}"
        what = "lost connection before the output was complete" if begun else "cannot start the remote command"
        return UnreachableError(
            f"{self.name}: {what}: {reason}",
            code="connection-lost",
            hint=RETRY,
        )

    def retry(self, errors: bytes, attempt: int) -> bool:
        """Whether to send a script that did not start again immediately, after `attempt` attempts."""
        del errors, attempt
        return False

    def run(
        self,
        script: str,
        *arguments: str,
        stdin: bytes = b"",
        timeout: float = TIMEOUT,
        prefetch: bool = False,
        first: str = "",
        fixed: bool = False,
        ahead: bool = False,
        part: str = "",
    ) -> Answer:
        """Run a script and wait for it. A nonzero exit code is returned; UnreachableError if none arrives.

        `prefetch`: the script is read-only and likely to be repeated, so the next yurt process may send it early.
        `first`: what the script evaluates as $yurt_first. `fixed`: the script never changes, so the host may keep it.
        `ahead`: the next yurt process like this one may open the session early, and let it load the script.
        `part`: what the script waits for, such as Slurm; if it takes long, that is reported.
        """
        fixed = fixed and len(script) >= LONG
        if prefetch:
            prefetched = self._prefetched(script, arguments, stdin, first, fixed=fixed, part=part)
            if prefetched is not None:
                return prefetched
        deadline = time.monotonic() + timeout
        for attempt in itertools.count(1):
            parcel = self._parcel(script, arguments, first, fixed)
            opened = self.opened_ahead(parcel.name) if ahead and attempt == 1 else None
            if opened is not None:
                parcel = self.pack(script, arguments, first=first, keep="opened", missing=opened[1])
            with self.session(deadline):
                began = time.monotonic()
                command = opened and opened[0]
                returned, out, err = self._communicate(parcel, stdin, deadline, timeout, command=command, part=part)
                took = time.monotonic() - began
            framed = wire.unpack(parcel, out)
            if framed is None and parcel.missing and parcel.missing in out:  # nothing was executed
                self.forget_kept(parcel.name)
                continue
            if wire.was_kept(parcel, out):
                self.note_kept(parcel.name)
            if framed is not None and framed.code is not None:
                noise = out.partition(parcel.begin)[0] + err.partition(parcel.begin)[0]
                if ahead and parcel.name and opened is None:
                    self.open_ahead_next_time(parcel.name)
                return Answer(framed.code, framed.out, wire.errors_after(parcel, err), noise, took)
            if framed is not None or time.monotonic() > deadline or not self.retry(err, attempt):
                raise self.lost(returned, err or out, begun=framed is not None)
        raise AssertionError("not reached")

    def _parcel(self, script: str, arguments: Sequence[str], first: str, fixed: bool) -> wire.Parcel:
        """Return a script ready to send; a fixed one without its text if the host has it."""
        known = self.kept() if fixed else None
        if known is None:
            return self.pack(script, arguments, gnu=self.gnu(), first=first)
        parcel = self.pack(script, arguments, first=first, keep="call")
        return parcel if parcel.name in known else self.pack(script, arguments, first=first, keep="save")

    def pack(self, script: str, arguments: Sequence[str] = (), **how: Any) -> wire.Parcel:
        """Return a script ready to send: see `wire.pack`."""
        return wire.pack(script, arguments, prelude=self.prelude, **how)

    def kept(self) -> Collection[str] | None:
        """Return the scripts that the host has, by checksum; None if it keeps none."""
        return None

    def note_kept(self, name: str) -> None:  # noqa: B027
        """Note that the host has a script."""

    def forget_kept(self, name: str) -> None:  # noqa: B027
        """Note that the host does not have a script any more."""

    def _prefetched(
        self, script: str, arguments: Sequence[str], stdin: bytes, first: str, *, fixed: bool, part: str
    ) -> Answer | None:
        """Return the prefetched result of a script. If a verb will repeat it, save it for the next process."""
        socket, target = self.socket(), queue_prefetch.take_target()
        if not socket:
            return None
        key = "\0".join([socket, script, first, *arguments, ""]).encode(errors="surrogateescape") + stdin
        is_saved, answer = target is not None and queue_prefetch.is_saved(key, target), None
        try:
            found = queue_prefetch.answer(
                key, clocks().slow, self.silence() or TIMEOUT, lambda begun: self.report_slow(part if begun else "")
            )
        except TimeoutError:
            if not self.connected():  # the connection is at fault, not the host: the query opens another one
                return None
            raise self.did_not_respond() from None
        if found is not None:
            (begin, end), out, took = found
            framed = wire.unpack(wire.Parcel("", b"", begin, end), out)
            if framed is not None and framed.code is not None and (framed.code == 0 or took >= clocks().slow):
                self.note_response()
                answer = Answer(framed.code, framed.out, b"", seconds=took)
        if target is None or (answer is not None and (is_saved or answer.code)):
            return answer
        parcel = self._parcel(script, arguments, first, fixed)
        queue_prefetch.save(
            key,
            target,
            (parcel.begin, parcel.end),
            socket,
            request=self.session_request(parcel.command),
            argv=self.argv(parcel.command),
            query=parcel.stdin + stdin,
        )
        return answer

    def opened_ahead(self, name: str) -> tuple[Command, str] | None:
        """Return the session that was opened early for a script, and what it prints if the host does not have it."""
        del name
        return None

    def open_ahead_next_time(self, name: str) -> None:  # noqa: B027
        """Let the next yurt process open a session for this script early."""

    def session_request(self, command: str) -> queue_prefetch.Request:
        """Return what asks the master for a session with a command; without bytes, a program must do it."""
        del command
        return b"", []

    def connected(self) -> bool:
        """Whether the connection that `socket` names works on this side."""
        return True

    def socket(self) -> str:
        """Return the socket of the connection that prefetching requires; empty if the host has none."""
        return ""

    def send(
        self,
        script: str,
        *arguments: str,
        content: bytes,
        resume: bool,
        moved: Callable[[int], None],
        timeout: float = TIMEOUT,
    ) -> Answer:
        """Run a script that receives a large content and reports each piece that it has written: a line `at BYTES`.

        Other commands on the same connection stay fast. `resume`: the script first reports where to continue. `moved`
        receives the bytes written so far, and may raise to stop the upload; `timeout` limits the rest of the script.
        """
        from yurt.transport.pace import Pace

        for attempt in itertools.count(1):
            parcel = self.pack(script, arguments, gnu=self.gnu())
            deadline = time.monotonic() + timeout
            with self.session(deadline):
                pace = Pace(None if resume else 0)
                returned, out, err = self._communicate(parcel, content, deadline, timeout, pace=pace, moved=moved)
            framed = wire.unpack(parcel, out)
            if framed is not None and framed.code is not None:
                lines = [line for line in framed.out.split(b"\n") if not line.startswith(b"at ")]
                return Answer(framed.code, b"\n".join(lines), wire.errors_after(parcel, err))
            if framed is not None or not self.retry(err, attempt):
                raise self.lost(returned, err or out, begun=framed is not None)
        raise AssertionError("not reached")

    def silence(self) -> float | None:
        """Return after how many seconds without a response to give up; None: only the timeout of a script counts."""
        return None

    def limit(self, part: str = "") -> float:
        """Return how many seconds to wait for the host, or for a part of it such as its scheduler."""
        del part
        return within(clocks().silent)

    def note_silent(self, part: str = "") -> None:  # noqa: B027
        """Note that the host did not respond, or a part of it."""

    def note_response(self, part: str = "") -> None:  # noqa: B027
        """Note that the host responded, or a part of it."""

    def silent_since(self, part: str = "") -> float | None:
        """Return when the host, or a part of it, did not respond, if that was the last attempt."""
        del part
        return None

    def gave_up(self, part: str = "") -> bool:
        """Whether this process has just waited for it in vain."""
        del part
        return False

    def _communicate(
        self,
        parcel: wire.Parcel,
        stdin: bytes,
        deadline: float,
        timeout: float,
        *,
        command: Command | None = None,
        part: str = "",
        pace: Pace | None = None,
        moved: Callable[[int], None] = lambda _done: None,
    ) -> tuple[int, bytes, bytes]:
        from yurt.transport.exchange import (  # not at the top: a prefetched result needs none
            MOST,
            Endless,
            Exchange,
            Limits,
        )

        command = command or self.start(parcel, None)
        limits = Limits(clocks().slow, self.silence(), max(0.1, deadline - time.monotonic()))

        def on_slow_part() -> None:
            if part or pace is None:  # an upload reports its progress
                self.report_slow(part) if part else self.report_long(timeout)

        exchange = Exchange(
            command,
            parcel.begin,
            limits,
            on_slow=self.report_slow,
            on_slow_part=on_slow_part,
            pace=pace,
            moved=moved,
        )
        try:
            returned, out, err = exchange.run(parcel.stdin, stdin)
        except Silent:
            command.end()
            raise self.did_not_respond() from None
        except TimeoutError:
            command.end()
            raise UnreachableError(
                f"{self.name}: no response within {timeout:.0f} s",
                code="timed-out",
                hint=RETRY,
            ) from None
        except Endless:
            command.end()
            raise RefusedError(
                f"{self.name}: the answer of the site has more than {MOST >> 20} MB",
                code="site-invalid",
                hint="look for what prints it: the dotfiles of your login, or a program that replaces one of the site",
            ) from None
        except BaseException:
            command.end()
            raise
        if parcel.begin in out:
            self.note_response()
        return returned, out, err

    def report_slow(self, part: str = "") -> None:
        """Report that the host has not responded yet, or a part of it."""
        limit = self.silence() if not part else self.limit(part)
        if limit is not None and limit <= clocks().slow:  # it ends now
            return
        report_slow(waiting(f"{f'{part} on ' if part else ''}{self.name} to respond", limit))

    def report_long(self, limit: float) -> None:
        """Report that the host has begun a command, and has not finished it yet."""
        report_slow(waiting(f"a command on {self.name} to finish", limit))

    def did_not_respond(self) -> UnreachableError:
        """Note that the host did not respond and return the error. The operation may have taken effect."""
        limit = self.silence() or 0  # what is left of the user's own limit may be nothing
        self.note_silent()
        how_long = f"within {limit:.0f} s" if limit >= 1 else "in time"
        return UnreachableError(
            f"{self.name}: no response {how_long}", code="timed-out", hint="check your network or VPN"
        )

    def start(self, parcel: wire.Parcel, err: IO[bytes] | None) -> Command:
        """Start the command of a parcel. `err`: a file for standard error; None: a pipe."""
        from yurt.transport.command import ProgramCommand

        argv = self.argv(parcel.command)
        if self.socket():
            counts.note_command(self.name)
        try:
            return ProgramCommand(argv, err)
        except FileNotFoundError:
            raise RefusedError(
                f"program '{argv[0]}' not found on this machine", code="program-missing", hint=f"install `{argv[0]}`"
            ) from None

    @contextlib.contextmanager
    def stream(
        self, script: str, *arguments: str, timeout: float = TIMEOUT, silence: float | None = None, part: str = ""
    ) -> Iterator[Stream]:
        """Run a script and yield its output stream; leaving the block stops the script.

        `timeout` limits the start, `silence` the wait for each further chunk. Iteration raises
        UnreachableError if either is exceeded or the connection is lost. `part`: what the script waits for, such as a
        job; if its first output takes long, that is reported.
        """
        parcel = self.pack(script, arguments, outlive=False, gnu=self.gnu())
        deadline = time.monotonic() + timeout
        with self.session(deadline), _unnamed_file() as err:
            command = self.start(parcel, err)
            stream = Stream(self, parcel, command, err, start=deadline, silence=silence, part=part)
            try:
                rest = memoryview(parcel.stdin)
                with contextlib.suppress(BrokenPipeError):
                    while rest:
                        rest = rest[command.stdin.write(rest) :]
                yield stream
            finally:
                stream.close()

    def put(self, content: bytes, target: str, *, mode: int = 0o600, timeout: float = TIMEOUT) -> None:
        """Write a file on the host atomically and create its parent folders. RefusedError if that fails."""
        answer = self.run(PUT, target, f"{mode:o}", str(len(content)), stdin=content, timeout=timeout)
        if answer.code:
            raise refusal(self.name, f"cannot write '{target}'", answer.errors)

    def get(self, source: str, target: Path, *, executable: bool = False, timeout: float = TIMEOUT) -> None:
        """Fetch a file atomically: `target` is replaced only when the file is complete.

        It gets the mode that the user's umask gives to new files. NotFoundError if the host does not have the file.
        """
        temporary = f"{target.parent}/.{target.name}.{os.urandom(4).hex()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if executable else 0o666)
        try:
            with (
                os.fdopen(descriptor, "wb") as file,
                self.stream(GET, source, timeout=timeout, silence=timeout) as stream,
            ):
                size, received, head = -1, 0, b""
                for chunk in stream:
                    if size < 0:
                        head += chunk
                        line, newline, rest = head.partition(b"\n")
                        if not newline and len(head) < LONGEST_NUMBER:
                            continue
                        with self.reading():
                            size, body = whole(line.decode().strip()), rest
                    else:
                        body = chunk
                    received += file.write(body)
                    if received > size:  # perhaps without an end
                        break
                errors = stream.err.decode(errors="replace").strip()
                if stream.code == 44:
                    raise NotFoundError(f"{self.name}: file '{source}' not found", code="not-found")
                if stream.code or received != size:
                    raise refusal(self.name, f"cannot read '{source}'", errors or "it changed while it was read")
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def refusal(name: str, what: str, errors: str) -> RefusedError:
    """Return the error for an operation that failed on a host, with the reason from its stderr."""
    reason = errors.splitlines()[-1] if errors else "no error message"
    space = f"free disk space on {name}"
    if "No space left on device" in errors:
        return RefusedError(f"{name}: {what}: the disk is full", code="disk-full", hint=space)
    if "quota exceeded" in errors.lower():
        return RefusedError(f"{name}: {what}: your disk quota is exceeded", code="quota-full", hint=space)
    return RefusedError(f"{name}: {what}: {reason}", code="site-refused")


def not_requested(name: str, file: str) -> RefusedError:
    """Return the error for a file that a host sent although it was not requested."""
    return RefusedError(
        f"{name} sent {file!r}, which was not requested; the transfer was stopped",
        code="site-refused",
        hint=f"check the programs rsync, tar and find on {name}: somebody may have replaced them",
    )


def _unnamed_file() -> IO[bytes]:
    """Return an empty file without a name. On Linux without tempfile, which takes long to import."""
    with contextlib.suppress(OSError, AttributeError):
        flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
        return os.fdopen(os.open(os.environ.get("TMPDIR") or "/tmp", flags, 0o600), "w+b")
    import tempfile

    return tempfile.TemporaryFile()
