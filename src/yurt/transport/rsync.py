"""Fetches folders of runs with rsync over the host's connection. An interrupted transfer can be continued."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from yurt.errors import RefusedError, YurtError, here_is_full
from yurt.model.files import Brought, Pick, Progress, unreported
from yurt.transport import room, rsync_process, rsync_report, rsync_shell
from yurt.transport.base import TIMEOUT, Host, refusal
from yurt.transport.rsync_process import INCOMPATIBLE, LOST, PARTIAL, SILENCE, VANISHED, Process, Strange
from yurt.transport.ssh import SshHost


def bring(
    host: Host,
    source: str,
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    names: Sequence[str] = (),
    silence: int = SILENCE,
) -> Brought:
    """Fetch the content of a folder on the host into a local folder. Unchanged files are not sent again.

    `names` are folders, or links to folders, in that folder: if given, only their content is fetched.
    UnreachableError: received files are kept, and the next call continues. Strange: nothing was fetched.
    """
    if isinstance(host, SshHost) and (pick.selects or names) and not rsync_process.refuses_other_files():
        raise Strange
    excludes = b"".join(_literal(path) + b"\0" for path in pick.without)
    sources, reported = _sources(host, source, names), _reported(pick, progress, names)
    argv = _argv(host, sources, target, pick, server=rsync_shell.server(), more=[*reported, f"--timeout={silence}"])

    def run(argv: Sequence[str], progress: Progress) -> tuple[int, _Fetch]:
        process = _Fetch(host, names, silence)
        return process.run(argv, progress, stdin=excludes), process

    def bring_all(argv: Sequence[str], progress: Progress) -> Brought:
        code, process = rsync_process.attempted(host, partial(run, argv, progress))
        problem = _problem(host, target, process, code)
        if problem is not None:
            raise problem
        return process.brought(source, code)

    if pick.check_room:
        room.check(target, bring_all([argv[0], "--dry-run", *argv[1:]], unreported).size)
    return bring_all(argv, progress)


def bring_after(
    host: SshHost,
    source: str,
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    script: str,
    arguments: Sequence[str],
) -> tuple[str, Brought | None]:
    """As `bring`, after a script of one line on the host, in the same session. Also return its standard error.

    None: the script has exited, or did not run; nothing was fetched.
    """
    server, more = rsync_shell.server(script, *arguments), [*_reported(pick, progress), f"--timeout={SILENCE}"]
    argv = _argv(host, _sources(host, source, ()), target, pick, server=server, more=more)
    with host.session(time.monotonic() + TIMEOUT):
        process = _Fetch(host, (), SILENCE)
        code = process.run(argv, progress)
    if not process.begun or process.noisy:
        return process.errors, None
    problem = _problem(host, target, process, code)
    if problem is not None:
        raise problem
    return process.errors, process.brought(source, code)


def _reported(pick: Pick, progress: Progress, names: Sequence[str] = ()) -> list[str]:
    """Return the options for what rsync prints: each file only if the totals do not tell enough."""
    return [*rsync_report.totals(progress), *([rsync_report.EACH] if names or pick.backup else [])]


def _argv(
    host: Host, sources: Sequence[str], target: Path, pick: Pick, *, server: str, more: Sequence[str]
) -> list[str]:
    argv = ["rsync", *rsync_process.OWN_MODES, *more, f"--partial-dir={PARTIAL}", "--from0", "--exclude-from=-"]
    argv += ["--backup", "--suffix=~", "--exclude=.[gG][iI][tT]"] if pick.backup else []
    argv += ["-m"] if pick.only or pick.files_only else []
    if pick.only:
        argv += ["--include=*/", *(f"--include={glob}" for glob in pick.only), "--exclude=*"]
    reach = [*rsync_shell.OPTIONS, server] if isinstance(host, SshHost) else []
    return [*argv, *reach, *sources, f"{target.absolute()}/"]


def _sources(host: Host, source: str, names: Sequence[str]) -> list[str]:
    """Return the folders to fetch, after the options that they need."""
    # -R keeps the path after the dot; -ii also lists files that are already up to date.
    options = ["-R", "--no-implied-dirs", "-ii"] if names else []
    paths = [f"{source}/./{name}/" for name in names] or [f"{source}/"]
    if isinstance(host, SshHost):
        paths = [f"{'' if at else 'host'}:{path}" for at, path in enumerate(paths)]
    return [*options, *paths]


class _Report(rsync_report.Report):
    """Also counts the files below each of these folders."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.below: dict[str, list[int]] = {name: [0, 0, 0] for name in names}

    def count(self, *, sent: bool, size: int, name: str) -> None:
        if name in self.below:
            files, bytes_, matched = self.below[name]
            self.below[name] = [files + sent, bytes_ + size * sent, matched + 1]


class _Fetch(Process):
    """One rsync process that fetches folders."""

    def __init__(self, host: Host, names: Sequence[str], silence: int) -> None:
        self.report = _Report(names)
        super().__init__(host, self.report, silence=silence)

    def brought(self, source: str, code: int) -> Brought:
        report = self.report
        incomplete = self._vanished(source) if code == VANISHED else set()
        below = {
            name: Brought(files=files, size=size, matched=matched, vanished=name in incomplete)
            for name, (files, size, matched) in report.below.items()
        }
        return Brought(
            files=report.files,
            size=report.size,
            matched=report.matched,
            vanished=code == VANISHED,
            replaced=report.replaced,
            below=below,
        )

    def _vanished(self, source: str) -> set[str]:
        """Return the folders from which files vanished; all folders if rsync does not name them."""
        start = re.escape(f"{source}/")
        found = [
            re.search(rf'"{start}(?:\./)?([^/"]+)', line) for line in self.errors.splitlines() if "vanished" in line
        ]
        names = {each[1] for each in found if each is not None}
        return names if names and len(names) <= len(found) and None not in found else set(self.report.below)


def _problem(host: Host, target: Path, process: _Fetch, code: int) -> YurtError | None:
    """Return the error for an exit code; None on success. Raises Strange."""
    if code in (0, VANISHED):
        return None
    rsync_process.check_requested(host, process.errors)
    full = rsync_process.no_space(process.errors)
    if full and "[sender]" not in full:
        return here_is_full(target, full)
    if process.without_output or (code in INCOMPATIBLE and not process.report.files):
        raise Strange
    if code in LOST and not process.begun:
        return host.lost(255, process.errors.encode(), begun=False)
    if code in LOST:
        return rsync_process.interrupted(host.name, "fetched")
    folder = re.search(r"^could not make way for new [^:\n]*: (.+)$", process.errors, re.MULTILINE)
    if folder is not None:
        return RefusedError(
            f"'{target / folder[1]}' is a folder with files, but the run has a file of this name; the other files were"
            " fetched",
            code="cannot-write",
            hint="move or delete the folder, or fetch to another one with `--to DIR`",
        )
    return refusal(host.name, "some files could not be fetched", rsync_process.first_error(process.errors, code))


def _literal(path: str) -> bytes:
    """Return an rsync pattern that matches only this path. A backslash is an escape only in patterns with *, ? or [."""
    special = any(character in path for character in "*?[")
    return os.fsencode("/" + (re.sub(r"([*?\[\\])", r"\\\1", path) if special else path))
