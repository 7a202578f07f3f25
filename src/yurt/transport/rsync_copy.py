"""Copies files and folders to or from a host with rsync over the host's connection.

One execution on the host checks the target, makes its parents and starts rsync. An interrupted transfer continues.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import RefusedError, YurtError, here_is_full
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.transport import protected, rsync_process, rsync_shell
from yurt.transport.base import Host, refusal
from yurt.transport.rsync_process import INCOMPATIBLE, LOST, OWN_MODES, PARTIAL, SILENCE, VANISHED, Process, Strange
from yurt.transport.rsync_report import TOTALS, Report
from yurt.transport.side import Side
from yurt.transport.ssh import SshHost

RECEIVE = (
    "t=$1 kind=$2; shift 2; LC_ALL=C; export LC_ALL; "
    'p=${t%/*}; until [ -z "$p" ] || [ -e "$p" ]; do p=${p%/*}; done; '
    'if [ -n "$p" ] && [ ! -d "$p" ]; then printf "yurt: file-at %s\\n" "$p" >&2; exit 3; fi; '
    'if [ "$kind" = folder ]; then '
    'if [ -e "$t" ] && [ ! -d "$t" ]; then echo "yurt: not-a-folder" >&2; exit 3; fi; mkdir -p -- "$t"; '
    'else if [ -d "$t" ]; then echo "yurt: is-a-folder" >&2; exit 3; fi; mkdir -p -- "${t%/*}/"; fi '
    '|| { echo "yurt: cannot-make" >&2; exit 3; }; '
    'command -v rsync > /dev/null 2>&1 || { echo "yurt: no-rsync" >&2; exit 3; }; '
)
"""Checks a target and makes its parents; one line, because not every login shell knows quotes around more."""

HINT = "free some space, then run the command again; it continues"


def put(side: Side, sources: Sequence[str], manner: Manner, progress: Progress, *, folder: bool) -> Moved:
    """Copy files and folders of this machine to a host. `folder`: the target is one; else it is a file.

    A source that ends with a slash stands for its content. UnreachableError: the host keeps what it has, and the next
    call continues. Strange: nothing was copied, because one side has no rsync.
    """
    host, target = side.host, side.path
    end = "/" if folder else ""
    argv = options(manner)
    if isinstance(host, SshHost):
        server = rsync_shell.server(side.guard + RECEIVE, target, "folder" if folder else "file")
        argv += [*rsync_shell.OPTIONS, server, *sources, f"host:{target}{end}"]
    else:
        made = host.run(side.guard + RECEIVE, target, "folder" if folder else "file")
        if made.code:
            raise refused(host, target, made.errors) or refusal(host.name, f"cannot write {target}", made.errors)
        argv += [*sources, f"{target}{end}"]
    return _run(host, argv, progress, target, up=True)


def get(host: Host, source: str, target: Path, manner: Manner, progress: Progress) -> Moved:
    """Copy a file of the host to a file of this machine, or the content of a folder if both paths end with a slash.

    As for `put`: what was received is kept, and the next call continues.
    """
    end = "/" if source.endswith("/") else ""
    if isinstance(host, SshHost) and (not end or manner.no_git) and not rsync_process.refuses_other_files():
        raise Strange
    reach = [*rsync_shell.OPTIONS, rsync_shell.server(), f"host:{source}"]
    argv = [
        *options(manner, OWN_MODES),
        *(reach if isinstance(host, SshHost) else [source]),
        f"{target.absolute()}{end}",
    ]
    return _run(host, argv, progress, str(target), up=False)


def options(manner: Manner, modes: Sequence[str] = ("-rlpts", "--chmod=ug-s")) -> list[str]:
    """Return rsync and its options. By default, the target gets the modes of the source."""
    argv = ["rsync", *modes, f"--timeout={SILENCE}", f"--partial-dir={PARTIAL}", *TOTALS]
    argv += ["--exclude=.[gG][iI][tT]"] * manner.no_git
    return argv + ["--checksum"] * manner.checksum + ["--delete"] * manner.delete + ["--dry-run"] * manner.dry


def command(script: str, *arguments: str) -> str:
    """Return an sh command with a script of one line; words that follow it are further arguments of the script."""
    return shlex.join(["sh", "-c", script, "yurt", *arguments])


def _run(host: Host, argv: Sequence[str], progress: Progress, target: str, *, up: bool) -> Moved:
    report = Report()

    def run() -> tuple[int, Process]:
        process = Process(host, report)
        return process.run(argv, progress), process

    code, process = rsync_process.attempted(host, run)
    problem = _problem(host, process, report, code, target, up=up)
    if problem is not None:
        raise problem
    return moved(report, code)


def moved(report: Report, code: int, way: str = "rsync") -> Moved:
    """Return the result of a transfer that succeeded."""
    return Moved(
        files=report.files,
        size=report.size,
        unchanged=max(0, report.matched - report.files),
        deleted=report.deleted,
        skipped=report.skipped,
        vanished=code == VANISHED,
        way=way,
    )


def _problem(host: Host, process: Process, report: Report, code: int, target: str, *, up: bool) -> YurtError | None:
    """Return the error for an exit code; None on success. Raises Strange."""
    if code in (0, VANISHED):
        return None
    known = refused(host, target, process.errors)
    if known is not None:
        return known
    rsync_process.check_requested(host, process.errors)
    if "yurt: no-rsync" in process.errors:
        raise Strange
    full = rsync_process.no_space(process.errors)
    if full and "[sender]" not in full:
        return refusal(host.name, f"cannot write {target}", full) if up else here_is_full(target, full, hint=HINT)
    if process.without_output or (code in INCOMPATIBLE and not report.files):
        raise Strange
    if code in LOST and not process.begun:
        return host.lost(255, process.errors.encode(), begun=False)
    if code in LOST:
        return rsync_process.interrupted(host.name, "uploaded" if up else "fetched")
    why = rsync_process.first_error(process.errors, code)
    return refusal(host.name, f"some files could not be {'uploaded' if up else 'fetched'}", why)


def refused(host: Host, target: str, errors: str) -> YurtError | None:
    """Return the error if the host refused the target; None if it did not."""
    guarded = protected.refused(host, target, errors)
    if guarded is not None:
        return guarded
    file = re.search(r"^yurt: file-at (.*)$", errors, re.MULTILINE)
    if file is not None:
        return RefusedError(
            f"{host.name}: cannot write '{target}': '{file[1]}' is a file, not a folder",
            code="site-refused",
            hint="choose another name",
        )
    if "yurt: not-a-folder" in errors:
        return RefusedError(
            f"{host.name}: '{target}' is a file, not a folder", code="site-refused", hint="choose another name"
        )
    if "yurt: is-a-folder" in errors:
        return RefusedError(
            f"{host.name}: '{target}' is a folder, not a file",
            code="site-refused",
            hint="add a slash to the name to copy into this folder",
        )
    if "yurt: cannot-make" in errors:
        lines = [line for line in errors.splitlines() if "mkdir" in line]
        reason = re.sub(r"^mkdir: cannot create directory '?(.*?)/?'?: ", r"\1: ", lines[-1] if lines else "")
        return refusal(host.name, f"cannot write '{target}'", reason)
    return None
