"""Protects folders of a host from a copy: yurt's own, and with --delete also the home and the storage tiers.

The check is a part of the script that receives the files, so that links are followed where they are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from yurt.errors import RefusedError, UserError, YurtError
from yurt.transport.base import Host

REAL = (
    'yurt_real() { r=; p=$1; until (cd -P -- "${p:-/}") > /dev/null 2>&1; do r=/${p##*/}$r; p=${p%/*}; done; '
    'p=$(cd -P -- "${p:-/}" && pwd -P); printf %s "${p%/}$r"; }; '
)
"""Prints a path without links, also of a file that does not exist yet; nothing for the root."""

SAY = 'printf "yurt: %s %s\\n" WHAT "$o" >&2; exit 3'
INSIDE = f'case $g/ in "$e"/*) {SAY} ;; esac; '
AROUND = f'case $e/ in "$g"/*) {SAY} ;; esac; '


def script(
    paths: Sequence[str], *, own: Sequence[str], kept: Sequence[str], sources: Sequence[str] = (), delete: bool = False
) -> str:
    """Return a script of one line that exits if a copy to these paths must not be.

    They must not be in `own` folders or `sources`; with `delete`, they must not contain those and `kept` ones either.
    """
    both = INSIDE + (AROUND if delete else "")
    checks = _each(sources, both, "into-itself") + _each(own, both, "own-folder")
    checks += _each(kept, AROUND, "kept-folder") if delete else ""
    return f'{REAL}for g in {shlex.join(paths)}; do g=$(yurt_real "$g"); {checks}done; '


def _each(folders: Sequence[str], checks: str, what: str) -> str:
    if not folders:
        return ""
    return f'for o in {shlex.join(folders)}; do e=$(yurt_real "$o"); {checks.replace("WHAT", what)}done; '


def refused(host: Host, target: str, errors: str) -> YurtError | None:
    """Return the error if the script exited; else None."""
    found = re.search(r"^yurt: (into-itself|own-folder|kept-folder) (.*)$", errors, re.MULTILINE)
    if found is None:
        return None
    if found[1] == "into-itself":
        return into_itself(found[2], target)
    if found[1] == "own-folder":
        return in_own(f"{host.name}:{target}", found[2])
    return would_empty(f"{host.name}:{target}", found[2])


def into_itself(source: str, target: str) -> UserError:
    return UserError(
        f"'{source}' cannot be copied to '{target}': one contains the other",
        code="usage",
        hint="name a place outside of it",
    )


def in_own(target: str, folder: str) -> RefusedError:
    return RefusedError(
        f"nothing was copied: {target} is in yurt's own folder {folder}, or contains it",
        code="site-refused",
        hint="choose another place",
    )


def would_empty(target: str, folder: str) -> RefusedError:
    return RefusedError(
        f"nothing was copied: --delete at {target} would delete files of {folder}",
        code="site-refused",
        hint="name a folder below it, or copy without `--delete`",
    )
