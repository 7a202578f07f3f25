"""Runs a script on a host only if its folders can be read and no other user could have written to them."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from yurt.backends import scripts
from yurt.errors import RefusedError, UnreachableError, YurtError
from yurt.model import layout
from yurt.transport.base import TIMEOUT, Answer, Host
from yurt.transport.stream import Stream

OPEN, FOREIGN, UNREADABLE = 40, 41, 42
"""Exit codes of a refusal: other users can write to a folder of the user; a folder is not the user's own; the disk of
run folders cannot be read, so that a missing one proves nothing."""

REFUSALS = (OPEN, FOREIGN, UNREADABLE)

MAKE = """\
make_base() { # make_base STORAGE BASE: -m, because a default ACL overrides the umask
  [ -d "$2" ] && return
  (umask 077 && mkdir -p "$1") || { unsafe= && return 1; }
  mkdir -m 700 "$2" 2> /dev/null || [ -d "$2" ] || mkdir -m 700 "$2" || { unsafe= && return 1; }
  own "$@" # another user may have been first
}
"""
"""Makes yurt's folder on a site, which contains all others."""

MOUNTED = """\
mounted() { # mounted STORAGE BASE: whether run folders can be read; an unmounted disk is an empty or missing folder
  unsafe="$1 cannot be read now"
  if [ -e "$2" ]; then [ -r "$2" ] && [ -x "$2" ] && return; return 42; fi
  for own_each in "$1"/* "$1"/.[!.]*; do [ ! -e "$own_each" ] || return 0; done # only yurt's folder was removed
  return 42
}
readable() { # readable STORAGE: whether what it lacks does not exist; else prints why
  [ -r "$1" ] && [ -x "$1" ] || { echo "$1 cannot be read now" >&2 && return 42; }
}
"""

RUNS = r"/projects/[^/]+/(runs|sweeps)(/|$)"
"""In the path of a run folder, or of those above it: it was made before, so its disk must be there."""

FEW = 8
"""Up to so many run folders are checked each; of more, only the folders they are in."""


def run(
    host: Host,
    folders: Sequence[str],
    script: str,
    *arguments: str,
    also: Sequence[str] = (),
    make: bool = False,
    stdin: bytes = b"",
    timeout: float = TIMEOUT,
    prefetch: bool = False,
    first: str = "",
    ahead: bool = False,
    part: str = "",
    mounted: bool = True,
) -> Answer:
    """Run a script that uses these run or project folders and the paths `also`. RefusedError if one is not safe.

    The script must be the same for all runs, since sites keep scripts; what differs are its arguments, its input, and
    `first`, which is evaluated before it. `make`: make yurt's folder on the site if it does not exist.
    `prefetch`, `ahead`, `part`: see `Host.run`. `mounted`: only if the disk of the run folders can be read.
    """
    script, calls = parts(folders, script, also, make=make, mounted=mounted)
    answer = host.run(
        script,
        *arguments,
        stdin=stdin,
        timeout=timeout,
        prefetch=prefetch,
        first=calls + first,
        fixed=True,
        ahead=ahead,
        part=part,
    )
    if answer.code in REFUSALS:
        raise refused(host.name, answer.code, answer.errors)
    return answer


def parts(
    folders: Sequence[str], script: str, also: Sequence[str] = (), *, make: bool = False, mounted: bool = True
) -> tuple[str, str]:
    """Return a script that first checks folders, the same for all folders, and what it evaluates as $yurt_first."""
    return f'{_functions(make=make)}eval "$yurt_first"\n{script}', _calls(folders, also, make=make, mounted=mounted)


def send(
    host: Host,
    folders: Sequence[str],
    script: str,
    *arguments: str,
    content: bytes,
    resume: bool,
    moved: Callable[[int], None],
) -> Answer:
    """Run a script that receives a large content; see `Host.send`. RefusedError if a folder is not safe."""
    text = check(folders, make=True) + script
    answer = host.send(text, *arguments, content=content, resume=resume, moved=moved, timeout=600)
    if answer.code in REFUSALS:
        raise refused(host.name, answer.code, answer.errors)
    return answer


@contextlib.contextmanager
def stream(
    host: Host, folders: Sequence[str], script: str, *arguments: str, silence: float, part: str = ""
) -> Iterator[Stream]:
    """Run a script that uses these folders and yield its output. At the end: RefusedError if a folder is not safe.

    `part`: see `Host.stream`.
    """
    with host.stream(check(folders) + script, *arguments, silence=silence, part=part) as output:
        try:
            yield output
        except YurtError:  # the caller's, about the same exit code
            if output.code not in REFUSALS:
                raise
        if output.code in REFUSALS:
            raise refused(host.name, output.code, output.err.decode(errors="replace").strip())


def check(folders: Sequence[str], also: Sequence[str] = (), *, make: bool = False) -> str:
    """Return the first lines of a script, which exit if one of the folders, or of those above it, is not safe."""
    return _functions(make=make) + _calls(folders, also, make=make)


def _functions(*, make: bool) -> str:
    return scripts.text("own.sh", "job") + (MAKE if make else MOUNTED)


def _calls(folders: Sequence[str], also: Sequence[str] = (), *, make: bool = False, mounted: bool = True) -> str:
    found: dict[str, dict[str, None]] = {}
    for folder in folders:
        chain = layout.chain(folder)
        found.setdefault(chain[0], {}).update(dict.fromkeys(chain if len(folders) <= FEW else chain[:4]))
    for path in also:
        next(iter(found.values()))[path] = None
    stop = '|| { code=$?; printf "%s\\n" "$unsafe" >&2; exit $code; }\n'
    calls = [f"own {scripts.own_arguments(list(paths))} {stop}" for paths in found.values()]
    if not make:  # a second folder of yurt, such as that in the home folder, is checked if it exists
        seconds = zip(list(found)[1:], calls[1:], strict=True)
        calls[1:] = [f"[ ! -e {shlex.quote(base)} ] || {call}" for base, call in seconds]
    if mounted and not make:
        bases = dict.fromkeys(layout.chain(folder)[0] for folder in folders if re.search(RUNS, folder))
        calls[:0] = [f"mounted {scripts.own_arguments([base])} {stop}" for base in bases]
    if make:
        calls += [*(f"make_base {scripts.own_arguments([base])} {stop}" for base in found)]
    return "".join(calls)


def refused(name: str, code: int, errors: str) -> YurtError:
    if code == UNREADABLE:
        return unreadable(
            name, errors.splitlines()[-1].removesuffix(" cannot be read now") if errors else "its storage"
        )
    reason = errors.splitlines()[-1] if errors else "a folder of yurt is not yours alone"
    hint = "choose a folder of your own as `storage_dir` with `yurt context edit`"
    if reason.endswith("is a symbolic link"):
        hint = f"remove the link on {name}, and put the folder itself in its place if it is one of yours"
    path = re.search(r" (?:to|in) (/.*)", reason) if code == OPEN else None
    if path:
        hint = f"check what is in it, then type this on {name}: `chmod go-w {shlex.quote(path[1])}`"
    return RefusedError(f"{name}: {reason}, so yurt does not use it", code="storage-unsafe", hint=hint)


def unreadable(name: str, storage: str) -> UnreachableError:
    """Return the error for a disk with run folders that is not mounted or cannot be read."""
    return UnreachableError(
        f"{name}: {storage} cannot be read now, so nothing is known about the runs in it",
        code="storage-unreadable",
        hint="its disk may not be mounted; do not repeat the runs, run the command again when the folder can be read",
    )
