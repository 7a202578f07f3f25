"""Opens the session of a submission while Python still imports the rest of yurt.

On the site, the session loads the script that the last submission used, which the site keeps, and then waits for the
rest of its input. It changes nothing until that arrives; if it never does, it ends. Imports only modules that Python
has loaded anyway.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence

from yurt import private
from yurt.transport.queue_prefetch import ask_for_session, data_file, is_binary

TYPE_CHECKING = False  # importing typing takes longer than opening the session
if TYPE_CHECKING:
    from _socket import socket

_opened: list[Opened] = []
"""The session, until it is taken."""

_wanted: list[Sequence[str]] = []
"""The command line, if the next one like it should open a session early."""


class Opened:
    """A session that was asked for: its control connection, its three streams, and the script that it loads."""

    def __init__(self, path: str, name: str, missing: str, request: bytes, opener: bytes) -> None:
        self.path, self.name, self.missing = path, name, missing
        stdin, out, err = os.pipe(), os.pipe(), os.pipe()
        self.streams = (stdin[1], out[0], err[0])
        theirs = (stdin[0], out[1], err[1])
        try:
            self.control: socket = ask_for_session(path, request, theirs)
            os.write(stdin[1], opener)
        except OSError:
            for each in self.streams:
                os.close(each)
            raise
        finally:
            for each in theirs:
                os.close(each)

    def close(self) -> None:
        self.control.close()
        for each in self.streams:
            os.close(each)


def begin(arguments: Sequence[str]) -> None:
    """Open the session if this command line is a `yurt run` like the last one, in the same folder."""
    if any(each in ("--dry-run", "--help", "-h") for each in arguments):
        return
    _wanted.append(arguments)
    try:
        place, path, variables, name, missing, request, opener = marshal.loads(private.read(_file()))
        if (
            place == _place(arguments)
            and os.path.exists(path)
            and not os.path.exists(f"{path}.silent")
            and is_binary("ssh", os.environ.get("PATH", ""))
            and all(os.environ.get(each) == value for each, value in variables)
        ):
            _opened.append(Opened(path, name, missing, request, opener))
    except (OSError, ValueError, EOFError, TypeError):
        return


def take(path: str, name: str) -> Opened | None:
    """Return the session if it is one on this master that loads this script. The caller closes it."""
    if not _opened:
        return None
    if (_opened[0].path, _opened[0].name) == (path, name):
        return _opened.pop()
    drop()
    return None


def drop() -> None:
    """Close the session: a site may allow only one at a time."""
    while _opened:
        _opened.pop().close()


def save(
    path: str,
    name: str,
    missing: str,
    *,
    request: bytes,
    variables: Sequence[tuple[str, str]],
    opener: bytes,
) -> None:
    """Save what opens such a session, for the next yurt process with a similar command line."""
    if not _wanted:
        return
    content = marshal.dumps((_place(_wanted[0]), path, list(variables), name, missing, request, opener))
    try:
        private.replace(_file(), content)
    except OSError:
        return


def _place(arguments: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return what the choice of a context depends on: the folder, the environment, and the options."""
    pairs = zip(["", *arguments], arguments, strict=False)
    chosen = [word for before, word in pairs if before == "--context" or word.startswith("--context=")]
    return os.getcwd(), os.environ.get("YURT_CONTEXT", ""), chosen


def _file() -> str:
    return data_file(f"session-ahead-{sys.version_info.minor}")
