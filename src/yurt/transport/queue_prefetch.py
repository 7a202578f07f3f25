"""Sends the last query of a verb to a site again while Python still imports the rest of yurt.

Each query is saved; the next `yurt ps`, or the same `yurt show` or `yurt logs`, sends it before anything else is
imported, if the connection is open. If yurt then makes the same query, its answer is already on the way. Otherwise the
early answer is discarded, which is safe because queries are read-only. Imports only modules that Python has loaded
anyway.

A saved query is sent as it is read, so it is read only if no other user can change it; see `private.read`.

A query is saved with its basis, which identifies everything that it was made from. Who knows the basis can use the
answer without making the query, and without importing what makes it.
"""

from __future__ import annotations

import marshal
import os
import sys
import time
from collections.abc import Callable, Sequence

from yurt import private

TYPE_CHECKING = False  # importing typing takes longer than sending the query
if TYPE_CHECKING:
    from _socket import socket

PIPE = 1 << 16
"""Maximum bytes of a query: it must fit into a pipe, because the reader may not have started."""

LONGEST = 120.0
"""Seconds that the rest of an answer may take."""

MOST = 512 << 20
"""Bytes that an answer may have: as in hosts/exchange.py, which is not imported here."""

GREETING = 2.0
"""Seconds in which a master answers: it is a process of this machine."""

SILENCES = ("silent", "Slurm", "accounting")
"""Endings of the files that record that a site did not respond, or a part of it."""

_SET_PIPE_SIZE = 1031

_HELLO = b"\0\0\0\x08\0\0\0\x01\0\0\0\x04"
"""The first packet of an OpenSSH master; see yurt.transport.mux."""

_OPENED = b"\x80\0\0\x06"
"""The type of the packet after it, behind its length, if the master opened the session."""

VERBS = ("ps", "show", "logs")
"""The verbs whose queries are sent early. A query of `ps` does not depend on its arguments; those of the others do."""

_pending: list[_Query] = []
"""The query sent early, until its answer is used."""

_arguments: list[str] = []
"""The command line of this process."""

_prepared: list[tuple[str, bytes]] = []
"""The verb and the basis of the next query."""


class _Query:
    """A query in progress: its key, the markers around its answer, and its session or its process.

    `request` asks a master for a session; if it is empty, `argv` is started.
    """

    def __init__(
        self,
        key: bytes,
        basis: bytes,
        frame: tuple[bytes, bytes],
        path: str,
        *,
        request: bytes,
        argv: list[str],
        query: bytes,
    ) -> None:
        self.key, self.basis, self.frame, self.path = key, basis, frame, path
        self.received: bytes | None = None
        self.failed = self.timed_out = False
        self.seconds = 0.0
        self.pid, self._said = 0, b""
        self.control: socket | None = None
        stdin, feed = os.pipe()
        self.out, out = os.pipe()
        try:
            import fcntl

            fcntl.fcntl(self.out, _SET_PIPE_SIZE, 1 << 20)
        except (ImportError, OSError):
            pass  # a smaller pipe only delays the answer
        null = os.open(os.devnull, os.O_WRONLY)
        actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
        try:
            if request:
                self._open_session(path, request, (stdin, out, null))
            else:
                self.pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setpgroup=0)
            os.write(feed, query)
        except OSError:
            os.close(self.out)
            raise
        finally:
            for each in (stdin, feed, out, null):
                os.close(each)

    def _open_session(self, path: str, request: bytes, streams: Sequence[int]) -> None:
        """Ask the master for a session that has these streams, as mux.py does; that takes too long to import.

        The query follows without waiting for the answer of the master: it is read-only.
        """
        self.control = ask_for_session(path, request, streams)

    def wait(self, seconds: float) -> bool:
        """Wait for output. Return False if none came in time; OSError if the master does not open the session."""
        import select

        while True:
            control = [] if self.control is None or self._is_open() else [self.control]
            waiting: list[int | socket] = [self.out, *control]
            readable = select.select(waiting, [], [], seconds)[0]
            if not readable or self.out in readable:
                return bool(readable)
            assert self.control is not None
            part = self.control.recv(1 << 12)
            self._said += part
            expected = _HELLO + self._said[len(_HELLO) : len(_HELLO) + 4] + _OPENED
            if not part or self._said[: len(expected)] != expected[: len(self._said)]:
                raise OSError

    def _is_open(self) -> bool:
        return len(self._said) >= len(_HELLO) + 4 + len(_OPENED)

    def end(self, *, kill: bool) -> bool:
        """Close it. Return whether it succeeded, as far as that is known: the answer has its own end marker."""
        os.close(self.out)
        if self.control is not None:
            self.control.close()
            return not kill
        if kill:
            os.kill(self.pid, 9)
        return os.waitpid(self.pid, 0)[1] == 0


def begin(arguments: Sequence[str]) -> None:
    """Send the saved query if this command line will need its answer."""
    _arguments[:] = arguments
    verb = next((each for each in arguments[:4] if each in VERBS), "")
    if not verb or any(each in ("--cached", "--help", "-h", "--watch") for each in arguments):
        return
    try:
        saved = marshal.loads(private.read(_file(verb)))
        words, key, basis, path, frame, (request, variables), argv, query = saved
        if verb != "ps" and words != _arguments:
            return
        if os.path.exists(path) and not any(os.path.exists(f"{path}.{each}") for each in SILENCES):
            same = is_binary("ssh", os.environ.get("PATH", "")) and all(
                os.environ.get(name) == value for name, value in variables
            )
            request = request if same else b""
            _pending.append(_Query(key, basis, frame, path, request=request, argv=argv, query=query))
    except (OSError, ValueError, EOFError, TypeError):
        return


def prepare(verb: str, basis: bytes) -> None:
    """Say which verb the next query of this process is for, and what it is made from."""
    _prepared[:] = [(verb, basis)]


def is_sent() -> bool:
    """Whether a query was sent early."""
    return bool(_pending)


def early_output(basis: bytes, slow: float, silent: float, on_slow: Callable[[bool], None]) -> bytes | None:
    """Return the output of a query with this basis; None if none was sent, or it failed. `answer` still returns it."""
    early = next((each for each in _pending if each.basis == basis), None)
    if early is None or not basis:
        return None
    try:
        _receive(early, slow, silent, on_slow)
    except TimeoutError:
        return None
    _noise, begun, rest = (early.received or b"").partition(early.frame[0])
    output, ended, code = rest.rpartition(early.frame[1])
    return output if begun and ended and code.split(b"\n", 1)[0].strip() == b"0" else None


def answer(
    key: bytes, slow: float, silent: float, on_slow: Callable[[bool], None]
) -> tuple[tuple[bytes, bytes], bytes, float] | None:
    """Return the markers, the output and the seconds of the early answer; None if this query was not sent or failed.

    `on_slow` is called after `slow` seconds without a byte, with whether the answer has begun. TimeoutError after
    `silent` seconds; a query whose answer has begun has limits of its own.
    """
    early = next((each for each in _pending if each.key == key), None)
    if early is None:
        return None
    try:
        _receive(early, slow, silent, on_slow)
    finally:
        _pending.remove(early)
    return None if early.failed or early.received is None else (early.frame, early.received, early.seconds)


def _receive(early: _Query, slow: float, silent: float, on_slow: Callable[[bool], None]) -> None:
    """Read the answer, unless it was read before. TimeoutError, also again."""
    if early.timed_out:
        raise TimeoutError
    if early.received is not None or early.failed:
        return
    parts, size, complete, begun, began = [], 0, False, False, time.monotonic()
    try:
        while part := _read(early, slow, silent, on_slow, begun=begun):
            parts.append(part)
            size += len(part)
            if size > MOST:  # the query that follows says so
                return
            begun = begun or early.frame[0] in b"".join(parts)
            if early.control is not None and part.endswith(b"\n") and early.frame[1] in part[-200:]:
                break  # the answer is complete; the end of the session takes a little longer
        complete = True
    except TimeoutError:
        early.timed_out = True
        raise
    except OSError:  # the master did not open the session
        return
    finally:
        succeeded = early.end(kill=not complete)
        early.failed = not succeeded or not complete
        early.seconds = time.monotonic() - began
        early.received = b"".join(parts) if not early.failed else None


def _read(early: _Query, slow: float, silent: float, on_slow: Callable[[bool], None], *, begun: bool) -> bytes:
    silent = LONGEST if begun else silent
    if not early.wait(min(slow, silent)):
        if not begun and greets(early.path, GREETING) is None:  # its master is stopped
            raise TimeoutError
        on_slow(begun)
        if not early.wait(max(0.0, silent - slow)):
            raise TimeoutError
    return os.read(early.out, 1 << 20)


def ask_for_session(path: str, request: bytes, streams: Sequence[int]) -> socket:
    """Ask a master for a session that has these streams, and return the connection to it, which does not block."""
    import _socket

    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        control.settimeout(1.0)
        control.connect(path)
        control.sendall(request)
        for each in streams:
            rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, each.to_bytes(4, sys.byteorder))
            control.sendmsg([b"\0"], [rights])
        control.setblocking(False)
    except OSError:
        control.close()
        raise
    return control


def greets(path: str, seconds: float) -> bool | None:
    """Whether a master listens on a socket; None if it accepts connections and says nothing, as if it were stopped."""
    import _socket

    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        control.settimeout(seconds)
        control.connect(path)
        control.sendall(_HELLO)
        return bool(control.recv(1))
    except (TimeoutError, BlockingIOError):  # the latter if too many connections wait to be accepted
        return None
    except OSError:
        return False
    finally:
        control.close()


def is_binary(program: str, path: str) -> bool:
    """Whether a program is not a script, which may do more than what it is named after."""
    for folder in path.split(os.pathsep):
        try:
            with open(f"{folder or '.'}/{program}", "rb") as file:
                return file.read(2) != b"#!"
        except OSError:
            continue
    return False


Request = tuple[bytes, list[tuple[str, str]]]
"""What asks a master for a session, and the variables of the environment in it; without bytes, ssh is started."""


Target = tuple[str, bytes]
"""The verb that a query is for, and its basis; if that is empty, only the same query uses the answer."""


def take_target() -> Target | None:
    """Return what was prepared for the query that is made now; the one after it has to be prepared again."""
    try:
        return _prepared.pop()
    except IndexError:
        return None


def is_saved(key: bytes, target: Target) -> bool:
    """Whether the query that was sent early is this one, and was made from the same."""
    return any(each.key == key and each.basis == target[1] for each in _pending)


def save(
    key: bytes,
    target: Target,
    frame: tuple[bytes, bytes],
    path: str,
    *,
    request: Request,
    argv: Sequence[str],
    query: bytes,
) -> None:
    """Save a query for the next yurt process."""
    verb, basis = target
    if len(query) >= PIPE:
        return
    try:
        private.replace(_file(verb), marshal.dumps((_arguments, key, basis, path, frame, request, list(argv), query)))
    except OSError:
        return


def forget() -> None:
    """Delete the saved queries about states: the next ones will differ, or there will be none."""
    for verb in ("ps", "show"):
        try:
            os.unlink(_file(verb))
        except OSError:
            continue


def _file(verb: str) -> str:
    return data_file(f"ahead-{sys.version_info.minor}" + ("" if verb == "ps" else f"-{verb}"))


def data_file(name: str) -> str:
    """Return the path of a file in yurt's data folder, without yurt.config.paths, which takes longer to import."""
    home = os.environ.get("YURT_DATA_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "yurt")
    return os.path.join(home, name)
