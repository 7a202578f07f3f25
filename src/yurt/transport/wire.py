"""The protocol of an operation: one sh script on standard input, its output between random markers.

Pure. The host may print a banner or dotfile output before the first marker and anything after the last. Its login shell
may be any shell that knows single quotes. A truncated script does nothing: the whole script is one function that is
called on the last line.

A long script is kept on the host under its checksum, so that later operations send only the checksum.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from yurt.errors import UserError
from yurt.model.digest import sha256_name

HEARTBEAT = 15
"""Seconds between two checks of a script whether its output is still read."""


Keep = Literal["no", "call", "save", "opened"]
"""Send a script as it is, call the one that the host has, send it and save it there, or call the one that a session
has loaded (see `opener`)."""

END = "# the end of the script"
"""The last line of a script that is sent apart from what calls it: without it, a part is missing."""

KEPT = "yurt-saved"
"""What follows the end of the output if the script was saved."""

SHORT = 1500
"""Maximum bytes of a script that is sent as one line: a shell reads it itself, byte by byte, without a program."""

ONE_LINE = 'sh -c \'IFS= read -r yurt_line && eval "$(printf %b "$yurt_line")"\''

FOLDER = '"${XDG_CACHE_HOME:-$HOME/.cache}/yurt/scripts"'
"""Where scripts are kept on a host."""


class Parcel(msgspec.Struct, frozen=True):
    """A script ready to send: the remote command, its standard input, and the markers around its output."""

    command: str
    stdin: bytes
    begin: bytes
    end: bytes
    alive: bytes = b""
    name: str = ""
    """The checksum of a script that is kept on the host."""
    missing: bytes = b""
    """What the host prints if it does not have that script; nothing was executed then."""


class Framed(msgspec.Struct, frozen=True):
    """The output between the markers. `code` is None if the end marker is missing."""

    out: bytes
    code: int | None


def pack(
    script: str,
    arguments: Sequence[str] = (),
    *,
    outlive: bool = True,
    through: bool = False,
    gnu: bool = True,
    first: str = "",
    keep: Keep = "no",
    missing: str = "",
    prelude: str = "",
) -> Parcel:
    """Wrap a POSIX sh script. `gnu`: the host has the tools of GNU.

    `outlive`: the script continues when the connection is lost, and reads the rest of standard input. Otherwise it
    has no input and is killed when its standard input closes. `through`: the rest of standard input is its own, and
    its process id is the first line on standard error. It is killed when nobody reads its output any more, to which
    it adds `Parcel.alive` at times to find out, since it may be silent for hours. (sshd keeps standard error open.)
    `first`: what the script evaluates as $yurt_first. `keep`: whether the host has the script, or should keep it; only
    with `outlive`. `missing`: what the session prints if the host does not have the script, with "opened".
    `prelude`: what is executed before the script.
    """
    if "\0" in script or any("\0" in argument for argument in arguments):
        raise UserError("a command cannot contain NUL bytes", code="usage")
    mark = os.urandom(8).hex()
    begin, end = f"yurt-begin-{mark}", f"yurt-end-{mark}"
    call = " ".join(["yurt_main", *(shlex.quote(argument) for argument in arguments)])
    begun = f"printf '\\n%s\\n' {begin}; printf '\\n%s\\n' {begin} >&2"
    if through:
        alive = f"while sleep {HEARTBEAT} 3>&-; do printf '\\000%s' {mark} >&3 || kill -TERM 0; done"
        watch = f"exec 3>&1; watch=$({{ trap '' PIPE; {alive}; }} < /dev/null > /dev/null 2>&1 & echo $!); exec 3>&-"
        steps = f"{begun}; echo $$ >&2; {watch}; ({call}); code=$?; kill $watch 2> /dev/null"
    elif outlive:
        steps = f"trap '' HUP PIPE; {begun}; ({call}); code=$?"
    else:
        watch = "{ cat <&3; kill -TERM 0; } > /dev/null 2>&1 & watch=$!"
        steps = f"exec 3<&0; {begun}; ({call}) < /dev/null 3<&- & main=$!; {watch}; wait $main; code=$?; kill $watch"
    script = script if gnu else (Path(__file__).parent / "not_gnu.sh").read_text() + script
    head = prelude + (f"yurt_first={shlex.quote(first)}\n" if first else "")
    text = f"yurt_main() {{\n{script}\n}}\n"
    tail = f"{steps}; printf '%s %d\\n' {end} $code\n"
    name, apart = "", b""
    if keep != "no":
        kept = _kept(script)
        name, missing = sha256_name(kept), missing or f"yurt-missing-{mark}"
        if keep == "opened":
            text = ""
        elif keep == "call":
            text = _call(name, missing)
        else:
            text, apart = _sent(len(kept)) + _save(name), kept
            tail += 'printf %s "$yurt_kept"\n'
    body = f"{head}{text}{tail}"
    stdin = body.encode(errors="surrogateescape")
    if keep == "opened":
        stdin = b"%d\n%s" % (len(stdin), stdin)
    frame = f"\n{begin}\n".encode(), f"{end} ".encode(), f"\0{mark}".encode()
    if not name and len(stdin) <= SHORT:
        return Parcel(ONE_LINE, stdin.replace(b"\\", rb"\\").replace(b"\n", rb"\n") + b"\n", *frame)
    # Read the script by its length: the rest of standard input is the script's own input.
    read = f"command head -c {len(stdin)}" if gnu else f"dd bs=1 count={len(stdin)} 2> /dev/null"
    command = f"sh -c 'eval \"$({read})\"'"
    return Parcel(command, stdin + apart, *frame, name, missing.encode())


def kept_name(script: str) -> str:
    """Return the name under which a host keeps a script."""
    return sha256_name(_kept(script))


def load_kept(name: str) -> str:
    """Return one line that loads a script of the host, which then can be called as `yurt_main`; 3 if there is none."""
    return _call(name, "").replace("{ echo  && exit 0; }", "exit 3").rstrip("\n").replace("\n", "; ")


def _kept(script: str) -> bytes:
    """Return a script as a host keeps it: a function."""
    return f"yurt_main() {{\n{script}\n}}\n{END}".encode(errors="surrogateescape")


def _call(name: str, missing: str) -> str:
    """Return lines that load a script of the host. They execute what they compared; its owner does not matter."""
    return f"""\
yurt_text=$(command cat {FOLDER}/{name} 2> /dev/null)
[ "$(printf %s "$yurt_text" | command sha256sum)" = '{name}  -' ] || {{ echo {missing} && exit 0; }}
eval "$yurt_text"
"""


def opener(name: str, missing: str) -> tuple[str, bytes]:
    """Return a command and the beginning of its input: it loads a script that the host has, and waits for the rest.

    The rest is a parcel that was packed with `keep="opened"`. If it never comes, nothing is executed.
    """
    text = _call(name, missing) + 'read -r yurt_size && eval "$(command head -c "$yurt_size")"\n'
    return f"sh -c 'eval \"$(command head -c {len(text)})\"'", text.encode()


def _sent(size: int) -> str:
    """Return lines that load a script from standard input."""
    return f"""\
yurt_text=$(command head -c {size})
case $yurt_text in *'{END}') ;; *) exit 0 ;; esac
eval "$yurt_text"
"""


def _save(name: str) -> str:
    """Return lines that save the loaded script, aside and renamed, and remove old ones."""
    return f"""\
yurt_save() {{
  command mkdir -m 700 -p "$1" && printf %s "$yurt_text" > "$1/.$$" && command mv -f "$1/.$$" "$1/{name}" || return
  printf {KEPT}
  command find "$1" -type f -mtime +60 -exec rm -f {{}} +
}}
yurt_kept=$(umask 077 && yurt_save {FOLDER} < /dev/null 2> /dev/null)
"""


def unpack(parcel: Parcel, output: bytes) -> Framed | None:
    """Return the framed part of a finished output; None if the script did not start."""
    _noise, found, rest = output.partition(parcel.begin)
    if not found:
        return None
    answer, ended, trailer = rest.rpartition(parcel.end)
    if not ended:
        return Framed(rest, None)
    code = trailer.split(b"\n", 1)[0].strip()
    return Framed(answer, int(code)) if code.isdigit() and len(code) <= 3 else Framed(rest, None)


def was_kept(parcel: Parcel, output: bytes) -> bool:
    """Whether the host has saved the script of a finished output."""
    return bool(parcel.name) and KEPT.encode() in output.rpartition(parcel.end)[2]


def errors_after(parcel: Parcel, output: bytes) -> bytes:
    """Return the script's standard error, without the login's output before it."""
    return output.partition(parcel.begin)[2]


def certain(marker: bytes, held: bytes) -> int:
    """Return how many of these bytes are output for certain: all except the marker or a possible start of it."""
    if marker in held:
        return held.index(marker)
    for length in range(min(len(marker) - 1, len(held)), 0, -1):
        if held.endswith(marker[:length]):
            return len(held) - length
    return len(held)
