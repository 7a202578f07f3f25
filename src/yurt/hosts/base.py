"""The contract every host keeps: run a script, stream one, put a file, get a file.

Every operation may be repeated. One that raises UnreachableError may or may not have happened.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from yurt import queue_prefetch
from yurt.errors import NotFoundError, RefusedError, UnreachableError, YurtError
from yurt.hosts import wire

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 60.0
CHUNK = 1 << 16

PUT = """\
target=$1 mode=$2 size=$3
case $target in */*) folder=${target%/*}/ ;; *) folder=./ ;; esac
mkdir -p -- "$folder" || exit 1
if [ -d "$target" ]; then echo "it is a folder" >&2 && exit 1; fi
umask 077
aside=$folder.yurt-put-$(uname -n)-$$
trap 'rm -f -- "$aside"' EXIT
cat > "$aside" && [ "$(wc -c < "$aside")" -eq "$size" ] && chmod "$mode" -- "$aside" && mv -f -- "$aside" "$target"
"""

GET = """\
[ -f "$1" ] || exit 44
wc -c < "$1" && cat -- "$1"
"""


class Answer(msgspec.Struct, frozen=True):
    """What a script came to: its own exit code and output, free of banners and noise."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")

    @property
    def errors(self) -> str:
        return self.err.decode(errors="replace").strip()


class Stream:
    """A script's output as it comes. After the last chunk `code` and `err` are known."""

    def __init__(
        self,
        host: Host,
        parcel: wire.Parcel,
        process: subprocess.Popen[bytes],
        err: IO[bytes],
        *,
        start: float,
        silence: float | None,
    ) -> None:
        self._host, self._parcel, self._process, self._err = host, parcel, process, err
        self._start, self._silence = start, silence
        self.code: int | None = None

    @property
    def err(self) -> bytes:
        self._err.seek(0)
        return wire.errors_after(self._parcel, self._err.read())

    def __iter__(self) -> Iterator[bytes]:
        assert self._process.stdout is not None
        held, begun = b"", False
        while chunk := self._next(self._process.stdout.fileno(), begun):
            held += chunk
            if not begun:
                _noise, found, rest = held.partition(self._parcel.begin)
                if not found:
                    continue
                held, begun = rest, True
            if sure := wire.certain(self._parcel, held):
                yield held[:sure]
                held = held[sure:]
        returned = self._process.wait()
        last = wire.unpack(self._parcel, self._parcel.begin + held) if begun else None
        if last is None or last.code is None:
            self._err.seek(0)
            raise self._host.lost(returned, self._err.read(), begun=begun)
        self.code = last.code
        if last.out:
            yield last.out

    def _next(self, descriptor: int, begun: bool) -> bytes:
        """The next bytes; UnreachableError where none come in time."""
        left = self._silence if begun else max(0.0, self._start - time.monotonic())
        if not select.select([descriptor], [], [], left)[0]:
            raise UnreachableError(
                f"{self._host.name}: " + ("it fell silent" if begun else "the script did not begin in time"),
                code="timed-out",
                hint="repeat the command: it is safe to",
            )
        return os.read(descriptor, CHUNK)

    def close(self) -> None:
        """End the script if it still runs, and this side of it."""
        _abandon(self._process)
        self._err.close()


class Host(ABC):
    """A place where scripts run. Subclasses say how a command gets there and what failures mean."""

    name: str

    @abstractmethod
    def argv(self, command: str) -> list[str]:
        """The command line that hands `command` to a shell on the host."""

    def terminal(self, command: str) -> list[str]:
        """The command line that runs `command` there in the terminal of whoever calls yurt."""
        return self.argv(command)

    @contextlib.contextmanager
    def session(self, deadline: float) -> Iterator[None]:
        """Whatever must be there while one command runs, such as a connection. May raise."""
        del deadline
        yield

    @contextlib.contextmanager
    def forward(self, node: str, port: int) -> Iterator[int]:
        """Have a port of a node, as the host reaches it, on this machine's loopback; yields the port here."""
        del node
        yield port

    def lost(self, returned: int, errors: bytes, *, begun: bool) -> YurtError:
        """The error for a script whose end was never heard of."""
        words = errors.decode(errors="replace").strip().splitlines()[-1:]
        what = "the answer was cut off" if begun else "no script could be started"
        return UnreachableError(
            f"{self.name}: {what}" + "".join(f": {line}" for line in words) + f" (exit code {returned})",
            code="connection-lost",
            hint="repeat the command: it is safe to",
        )

    def retry(self, errors: bytes, attempt: int) -> bool:
        """Whether a script that never began may be sent once more at once, after so many attempts."""
        del errors, attempt
        return False

    def run(
        self, script: str, *arguments: str, stdin: bytes = b"", timeout: float = TIMEOUT, prefetch: bool = False
    ) -> Answer:
        """Run a script to its end. Its own failure is an answer; only a lost answer raises.

        `prefetch`: the script changes nothing and is likely to be run again, so the next yurt may begin with it.
        """
        if prefetch:
            early = self._early(script, arguments, stdin)
            if early is not None:
                return early
        deadline = time.monotonic() + timeout
        for attempt in itertools.count(1):
            parcel = wire.pack(script, arguments)
            with self.session(deadline):
                returned, out, err = self._communicate(parcel, stdin, deadline, timeout)
            framed = wire.unpack(parcel, out)
            if framed is not None and framed.code is not None:
                return Answer(framed.code, framed.out, wire.errors_after(parcel, err))
            if framed is not None or time.monotonic() > deadline or not self.retry(err, attempt):
                raise self.lost(returned, err or out, begun=framed is not None)
        raise AssertionError("not reached")

    def _early(self, script: str, arguments: Sequence[str], stdin: bytes) -> Answer | None:
        """The answer to a question asked ahead; else the question is left for the next yurt to ask ahead."""
        socket = self.socket()
        if not socket:
            return None
        key = "\0".join([socket, script, *arguments, ""]).encode(errors="surrogateescape") + stdin
        found = queue_prefetch.answer(key)
        if found is not None:
            (begin, end), out = found
            framed = wire.unpack(wire.Parcel("", b"", begin, end), out)
            if framed is not None and framed.code == 0:
                return Answer(0, framed.out, b"")
        parcel = wire.pack(script, arguments)
        queue_prefetch.leave(key, socket, (parcel.begin, parcel.end), self.argv(parcel.command), parcel.stdin + stdin)
        return None

    def socket(self) -> str:
        """The socket of a connection that must be open before anything can be asked; empty where there is none."""
        return ""

    def _communicate(
        self, parcel: wire.Parcel, stdin: bytes, deadline: float, timeout: float
    ) -> tuple[int, bytes, bytes]:
        import subprocess  # not at the top: an answer that was asked for ahead needs none

        process = self._start(parcel, subprocess.PIPE)
        try:
            out, err = process.communicate(parcel.stdin + stdin, timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _abandon(process)
            raise UnreachableError(
                f"{self.name}: no answer in {timeout:.0f} s",
                code="timed-out",
                hint="repeat the command: it is safe to",
            ) from None
        except BaseException:
            _abandon(process)
            raise
        return process.returncode, out, err

    def _start(self, parcel: wire.Parcel, err: int | IO[bytes]) -> subprocess.Popen[bytes]:
        import subprocess

        argv = self.argv(parcel.command)
        try:
            # In a session of its own: a stream's script ends its whole process group.
            return subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, start_new_session=True
            )
        except FileNotFoundError:
            raise RefusedError(
                f"the program '{argv[0]}' is not on this machine", code="program-missing", hint="install it"
            ) from None

    @contextlib.contextmanager
    def stream(
        self, script: str, *arguments: str, timeout: float = TIMEOUT, silence: float | None = None
    ) -> Iterator[Stream]:
        """Run a script and hand out its output as it comes; it ends when the block is left.

        `timeout` bounds the start, `silence` the wait for each further byte. What passes them, and a
        link that dies, raises UnreachableError out of the iteration.
        """
        import tempfile

        parcel = wire.pack(script, arguments, outlive=False)
        deadline = time.monotonic() + timeout
        with self.session(deadline), tempfile.TemporaryFile() as err:
            process = self._start(parcel, err)
            stream = Stream(self, parcel, process, err, start=deadline, silence=silence)
            try:
                assert process.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(parcel.stdin)
                    process.stdin.flush()
                yield stream
            finally:
                stream.close()

    def put(self, content: bytes, target: str, *, mode: int = 0o600, timeout: float = TIMEOUT) -> None:
        """Write a file there, whole or not at all; folders on its way are made."""
        answer = self.run(PUT, target, f"{mode:o}", str(len(content)), stdin=content, timeout=timeout)
        if answer.code:
            raise refusal(self.name, f"'{target}' could not be written", answer.errors)

    def get(self, source: str, target: Path, *, timeout: float = TIMEOUT) -> None:
        """Fetch a file, whole or not at all: `target` is replaced only when all of it is here."""
        import tempfile

        descriptor, aside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
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
                        if not newline:
                            continue
                        size, body = int(line), rest
                    else:
                        body = chunk
                    received += file.write(body)
                errors = stream.err.decode(errors="replace").strip()
                if stream.code == 44:
                    raise NotFoundError(f"{self.name} has no file '{source}'", code="not-found")
                if stream.code or received != size:
                    raise refusal(self.name, f"'{source}' could not be read", errors or "it changed meanwhile")
            os.replace(aside, target)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """End a program and let go of its pipes. Not read to their end: ssh lent them to its master."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def refusal(name: str, what: str, errors: str) -> RefusedError:
    """The error for something the far side would not do, by its own words."""
    words = errors.splitlines()[-1] if errors else "no reason given"
    if "No space left on device" in errors:
        return RefusedError(f"{name}: {what}: the disk is full", code="disk-full", hint="free some space there")
    if "quota exceeded" in errors.lower():
        return RefusedError(f"{name}: {what}: your quota is used up", code="quota-full", hint="free some space there")
    return RefusedError(f"{name}: {what}: {words}", code="site-refused")
