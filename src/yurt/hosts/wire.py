"""How an operation travels: one sh script on standard input, its answer between random markers.

Pure. The far side may print a banner or dotfile noise before the first marker and anything after
the last; its login shell may be any that knows single quotes. A script that arrives cut short is a
syntax error, because all of it is one function that is called on the last line.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import msgspec

from yurt.errors import UserError


class Parcel(msgspec.Struct, frozen=True):
    """A script ready to be sent: what the far side executes, what it reads, how its answer is framed."""

    command: str
    stdin: bytes
    begin: bytes
    end: bytes


class Framed(msgspec.Struct, frozen=True):
    """What was found between the markers. `code` is None if the end never came."""

    out: bytes
    code: int | None


def pack(script: str, arguments: Sequence[str] = (), *, outlive: bool = True) -> Parcel:
    """Wrap a POSIX sh script.

    `outlive`: it goes on to its end when the link is cut meanwhile, and reads what follows it on
    standard input. Otherwise it has no input, and is killed when its standard input ends.
    """
    if "\0" in script or any("\0" in argument for argument in arguments):
        raise UserError("a NUL byte cannot be sent to a shell", code="usage")
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
    # What follows the script on standard input is the script's own input, so it is read by length.
    command = f"sh -c 'eval \"$(command head -c {len(stdin)})\"'"
    return Parcel(command, stdin, f"\n{begin}\n".encode(), f"{end} ".encode())


def unpack(parcel: Parcel, output: bytes) -> Framed | None:
    """The answer in a finished output, or None if the script never began."""
    _noise, found, rest = output.partition(parcel.begin)
    if not found:
        return None
    answer, ended, trailer = rest.rpartition(parcel.end)
    if not ended:
        return Framed(rest, None)
    code = trailer.split(b"\n", 1)[0].strip()
    return Framed(answer, int(code)) if code.isdigit() else Framed(rest, None)


def errors_after(parcel: Parcel, output: bytes) -> bytes:
    """Standard error of the script alone, without what came before it."""
    return output.partition(parcel.begin)[2]


def certain(parcel: Parcel, held: bytes) -> int:
    """How many of these bytes are surely answer, whatever comes next: all but a beginning end marker."""
    if parcel.end in held:
        return held.index(parcel.end)
    for length in range(min(len(parcel.end) - 1, len(held)), 0, -1):
        if held.endswith(parcel.end[:length]):
            return len(held) - length
    return len(held)
