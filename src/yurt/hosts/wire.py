"""The protocol of an operation: one sh script on standard input, its output between random markers.

Pure. The host may print a banner or dotfile output before the first marker and anything after the last. Its login shell
may be any shell that knows single quotes. A truncated script does nothing: the whole script is one function that is
called on the last line.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import msgspec

from yurt.errors import UserError


class Parcel(msgspec.Struct, frozen=True):
    """A script ready to send: the remote command, its standard input, and the markers around its output."""

    command: str
    stdin: bytes
    begin: bytes
    end: bytes


class Framed(msgspec.Struct, frozen=True):
    """The output between the markers. `code` is None if the end marker is missing."""

    out: bytes
    code: int | None


def pack(script: str, arguments: Sequence[str] = (), *, outlive: bool = True) -> Parcel:
    """Wrap a POSIX sh script.

    `outlive`: the script continues when the connection is lost, and reads the rest of standard input. Otherwise it
    has no input and is killed when its standard input closes.
    """
    if "\0" in script or any("\0" in argument for argument in arguments):
        raise UserError("a command cannot contain NUL bytes", code="usage")
    mark = os.urandom(8).hex()
    begin, end = f"yurt-begin-{mark}", f"yurt-end-{mark}"
    call = " ".join(["yurt_main", *(shlex.quote(argument) for argument in arguments)])
    begun = f"printf '\\n%s\\n' {begin}; printf '\\n%s\\n' {begin} >&2"
    if outlive:
        steps = f"trap '' HUP PIPE; {begun}; ({call}); code=$?"
    else:
        watch = "{ cat <&3; kill -TERM 0; } > /dev/null 2>&1 & watch=$!"
        steps = f"exec 3<&0; {begun}; ({call}) < /dev/null 3<&- & main=$!; {watch}; wait $main; code=$?; kill $watch"
    body = f"yurt_main() {{\n{script}\n}}\n{steps}; printf '%s %d\\n' {end} $code\n"
    stdin = body.encode(errors="surrogateescape")
    # Read the script by its length: the rest of standard input is the script's own input.
    command = f"sh -c 'eval \"$(command head -c {len(stdin)})\"'"
    return Parcel(command, stdin, f"\n{begin}\n".encode(), f"{end} ".encode())


def unpack(parcel: Parcel, output: bytes) -> Framed | None:
    """Return the framed part of a finished output; None if the script did not start."""
    _noise, found, rest = output.partition(parcel.begin)
    if not found:
        return None
    answer, ended, trailer = rest.rpartition(parcel.end)
    if not ended:
        return Framed(rest, None)
    code = trailer.split(b"\n", 1)[0].strip()
    return Framed(answer, int(code)) if code.isdigit() else Framed(rest, None)


def errors_after(parcel: Parcel, output: bytes) -> bytes:
    """Return the script's standard error, without the login's output before it."""
    return output.partition(parcel.begin)[2]


def certain(parcel: Parcel, held: bytes) -> int:
    """Return how many of these bytes are output for certain: all except a possible start of the end marker."""
    if parcel.end in held:
        return held.index(parcel.end)
    for length in range(min(len(parcel.end) - 1, len(held)), 0, -1):
        if held.endswith(parcel.end[:length]):
            return len(held) - length
    return len(held)
