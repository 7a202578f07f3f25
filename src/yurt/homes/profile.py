"""The Unison profile: yurt's part between two lines, which yurt rewrites; the rest is the user's and is kept."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.config import paths
from yurt.errors import RefusedError, UserError

if TYPE_CHECKING:
    from yurt.homes.config import Homes
    from yurt.homes.places import Place

BEGIN = b"# >>> yurt: begin. yurt rewrites the lines up to its end; write your own lines outside of them.\n"
END = b"# <<< yurt: end\n"

PART = rb"""
# A root without this file is not mounted: it stops the sync.
mountpoint = .yurt-home
ignore = Path .yurt-home
confirmbigdel = true
times = true

# Versions that a sync replaces or deletes. (Name * would leave out names that begin with a dot.)
backup = Regex .*
backuplocation = central
backupprefix =
backupsuffix = .$VERSION
maxbackups = 1

# Hidden files and folders of the home. Force one in with a line of your own, for example:
#   ignorenot = Path .config
#   ignorenot = Path .vimrc
ignore = Path .*
# What stays out of a folder that was forced in: caches, keys, and the state of programs on one machine.
ignore = Path .config/{yurt,pulse,dconf,systemd}
ignore = Path .local/share/{yurt,uv,Trash,containers,keyrings}
ignore = Path .local/state
ignore = Name {.cache,.ipynb_checkpoints,.mypy_cache,.pytest_cache,.ruff_cache,.nox,.tox}

# Environments and packages: they belong to one machine, and can be installed again.
ignore = Name {.venv,venv,__pycache__,node_modules}
ignore = Path {anaconda,anaconda3,miniconda,miniconda3,miniforge,miniforge3,mambaforge,micromamba}

# Scratch space, yurt's folder, sockets and temporary files.
ignore = Path {scratch,SCRATCH,yurt}
ignore = Name {*.sock,.*.sock,*.socket,.nfs*,.fuse_hidden*,.*.swp}
"""


def merged(text: bytes) -> bytes:
    """Return the text of a profile with the current part of yurt; the rest is unchanged byte for byte.

    UserError if one of yurt's two lines is missing.
    """
    part = BEGIN + PART.lstrip(b"\n") + END
    before, began, rest = text.partition(BEGIN)
    if not began:
        if END in text:
            raise _broken("begin")
        return part + (b"\n" + text if text else b"")
    _old, ended, after = rest.partition(END)
    if not ended:
        raise _broken("end")
    return before + part + after


def only_ignores(text: bytes) -> bool:
    """Whether the user's lines only say what is ignored."""
    before, _began, rest = text.partition(BEGIN)
    lines = [*before.splitlines(), *rest.partition(END)[2].splitlines()]
    return all(re.match(rb"\s*($|#|ignore(not)?\s*=)", line) for line in lines)


WRITES_ELSEWHERE = re.compile(rb"-{0,2}\s*(follow|include|source|merge|logfile|backupdir)\s*(=|\s|$)")
"""Settings with which Unison writes outside of the home and its own folder, such as behind a link, or may do so."""


def writes_elsewhere(text: bytes, arguments: Sequence[str]) -> str:
    """Return the setting that lets Unison write outside of the home and its own folder; empty if there is none."""
    words = [*text.splitlines(), *(os.fsencode(word) for word in arguments if word.startswith("-"))]
    found = next(filter(None, (WRITES_ELSEWHERE.match(word.strip()) for word in words)), None)
    return "" if found is None else found[1].decode()


def _broken(which: str) -> UserError:
    return UserError(
        f"the Unison profile lacks the line at the {which} of yurt's part",
        code="config-invalid",
        hint="remove the rest of yurt's part with `yurt home profile --edit`; yurt then adds it again",
    )


def folder() -> Path:
    """Return Unison's folder on this machine."""
    return Path(os.environ.get("UNISON") or "~/.unison").expanduser().absolute()


def client_of(homes: Homes) -> str:
    """Return the name of the place whose profile counts: this machine if it is a place, else the hub."""
    return "local" if "local" in homes.names else homes.hub


def file_here(homes: Homes) -> Path:
    return folder() / f"{homes.profile}.prf"


GET = 'f=${UNISON:-$HOME/.unison}/$1.prf; printf "%s\\n" "$f"; if [ -e "$f" ]; then cat -- "$f"; fi'
PUT = """\
umask 077
folder=${UNISON:-$HOME/.unison}
mkdir -p -- "$folder" && cat > "$folder/.$1.$$" && mv -f -- "$folder/.$1.$$" "$folder/$1.prf"
"""


def read(place: Place) -> tuple[str, bytes]:
    """Return the path of the profile on a place, and its text; empty if there is none."""
    if place.here:
        file = file_here(place.homes)
        try:
            return str(file), file.read_bytes()
        except FileNotFoundError:
            return str(file), b""
    answer = place.run(GET, place.homes.profile)
    if answer.code:
        raise RefusedError(f"{place.name}: cannot read the Unison profile: {answer.errors}", code="site-refused")
    path, _newline, text = answer.out.partition(b"\n")
    return os.fsdecode(path), text


def write(place: Place, text: bytes) -> None:
    """Replace the profile on a place."""
    if place.here:
        paths.write_private(file_here(place.homes), text)
        return
    answer = place.run(PUT, place.homes.profile, stdin=text)
    if answer.code:
        raise RefusedError(f"{place.name}: cannot write the Unison profile: {answer.errors}", code="site-refused")


def ensure(place: Place) -> bytes:
    """Bring yurt's part of the profile on a place up to date; return the text of the profile."""
    _path, text = read(place)
    new = merged(text)
    if new != text:
        write(place, new)
    return new
