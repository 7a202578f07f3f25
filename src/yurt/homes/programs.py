"""Unison on the login hosts: copies this machine's program to a site that has none that is new enough."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from yurt.errors import RefusedError
from yurt.homes.places import Place

WANTED = "2.52"

INSTALL = """\
umask 077
folder=${UNISON:-$HOME/.unison}/yurt/bin
mkdir -p -- "$folder" && cat > "$folder/.unison.$$" && chmod 700 "$folder/.unison.$$" || exit 1
if "$folder/.unison.$$" -version < /dev/null; then
    mv -f -- "$folder/.unison.$$" "$folder/unison"
else
    rm -f -- "$folder/.unison.$$"
    exit 2
fi
"""
"""Runs the program once before it keeps it: another platform, or a missing library, shows there."""


def missing_here(detail: str) -> RefusedError:
    """Return the error for this machine without a Unison that is new enough."""
    found = f"; {detail} is too old" if detail else ""
    return RefusedError(
        f"this machine has no Unison {WANTED} or newer{found}",
        code="unison-missing",
        hint="install it, for example: `sudo apt install unison`, or `brew install unison`",
    )


def install(place: Place, detail: str) -> None:
    """Copy this machine's Unison to a place. RefusedError with the remedy if it does not run there."""
    found = shutil.which("unison")
    if place.settings.unison or found is None:
        raise missing(place, detail, "")
    answer = place.run(INSTALL, stdin=Path(os.path.realpath(found)).read_bytes(), timeout=300.0)
    if answer.code:
        lines = answer.errors.splitlines()
        raise missing(place, detail, lines[0] if lines else f"exit code {answer.code}")


def missing(place: Place, detail: str, why: str) -> RefusedError:
    """Return the error for a place without a Unison that is new enough; `why` this machine's copy does not help."""
    named = place.settings.unison
    found = f": {detail} is too old" if detail and detail != named else f": '{named}' does not exist" if named else ""
    copied = f"; this machine's copy does not run there ({why})" if why else ""
    return RefusedError(
        f"{place.name} has no Unison {WANTED} or newer{found}{copied}",
        code="unison-missing",
        hint=f"install it on {place.name}, for example: `conda install -c conda-forge unison`, and write its path as "
        f"`unison` of this place into homes.yaml",
    )
