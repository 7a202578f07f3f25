"""Downloads the files of one or many runs: with rsync, or as tar streams if one side has no rsync."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.errors import YurtError
from yurt.hosts import Host, rsync, tar
from yurt.hosts.base import refusal
from yurt.model import layout
from yurt.model.files import NOTHING, Brought, Contents, Pick, Progress, Pull

PARTS = (layout.OUTPUTS, layout.CHECKPOINTS)

# Standard input: names and paths, one per line. Leftovers of a killed script are removed with those of code uploads.
LINK_FOLDERS = """\
umask 077
mkdir -p -- "$1" && cd "$1" || exit 1
while IFS= read -r name && IFS= read -r path; do ln -s -- "$path" "$name" || exit 1; done
"""
"""Makes a folder of links to run folders, named as on this machine, so that one transfer copies many runs."""

UNLINK_FOLDERS = 'rm -rf -- "$1"'

LINKS = 'cd "$1" && find ./*/@WORK@ -type l -lname "$2" -print0 2> /dev/null'

LINKS_OF_ONE = 'cd "$1" && [ -d @WORK@ ] && find @WORK@ -type l -lname "$2" -print0'

HAS_RSYNC = "command -v rsync > /dev/null 2>&1"

Transfer = Callable[..., tuple[str, Brought]]


def contents(host: Host, folders: Sequence[str]) -> tuple[dict[str, Contents], bool]:
    """Return the contents of run folders, and whether the host has rsync."""
    lines = "".join(f"{folder}\n" for folder in folders)
    answer = ownership.run(
        host, folders, scripts.text("measure.sh") + scripts.text("contents.sh"), stdin=lines.encode(), timeout=600
    )
    if answer.code:
        raise refusal(host.name, "cannot read the run folders", answer.errors)
    method, *lines_of_runs = answer.text.splitlines()
    states, measures = lines_of_runs[: len(folders)], lines_of_runs[len(folders) :]
    sizes = {folder: measure for measure, _, folder in (line.partition(" ") for line in measures)}
    found = {
        folder: Contents(state == "ended", *(sizes.get(f"{folder}/{part}", NOTHING) for part in PARTS))
        for folder, state in zip(folders, states, strict=True)
        if state != "gone"
    }
    return found, method == "rsync"


def pull(
    host: Host,
    runs: Sequence[Pull],
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    everything: bool,
    has_rsync: bool | None = None,
) -> tuple[str, Brought]:
    """Fetch runs; see `Files.pull`. `has_rsync`: whether the host has rsync; None if that is unknown."""
    if has_rsync is None:
        has_rsync = host.run(HAS_RSYNC).code == 0
    transfer: Transfer = partial(_transfer, host, has_rsync=has_rsync)
    if len(runs) == 1:
        (run,) = runs
        without = ["pycache", *_links(host, LINKS_OF_ONE, run.folder, run.folder)] if everything else []
        return transfer(_source(run, everything=everything), target, _without(pick, without), progress)
    return _pull_many(host, runs, target, pick, progress, transfer=transfer, everything=everything)


def _pull_many(
    host: Host,
    runs: Sequence[Pull],
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    transfer: Transfer,
    everything: bool,
) -> tuple[str, Brought]:
    """Fetch several runs through a folder of links that have the local names."""
    gathered = f"{layout.project_of(runs[0].folder)}/incoming/fetch.{os.urandom(4).hex()}"
    lines = "".join(f"{run.name}\n{_source(run, everything=everything)}\n" for run in runs)
    try:
        answer = ownership.run(host, [runs[0].folder], LINK_FOLDERS, gathered, stdin=lines.encode(), timeout=600)
        if answer.code:
            raise refusal(host.name, "cannot link the run folders", answer.errors)
        without = []
        if everything:
            without = [f"{run.name}/pycache" for run in runs]
            without += [path.removeprefix("./") for path in _links(host, LINKS, gathered, runs[0].folder)]
        only = [f"/*{glob}" if glob.startswith("/") else glob for glob in pick.only]
        wanted = _without(Pick(only, pick.without), without)
        return transfer(gathered, target, wanted, progress, names=[run.name for run in runs])
    finally:
        with contextlib.suppress(YurtError):
            host.run(UNLINK_FOLDERS, gathered)


def _transfer(
    host: Host,
    source: str,
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    names: Sequence[str] = (),
    has_rsync: bool,
) -> tuple[str, Brought]:
    if has_rsync and rsync.usable():
        with contextlib.suppress(rsync.Strange):
            return "rsync", rsync.bring(host, source, target, pick, progress, names=names)
    return "tar", tar.bring(host, source, target, pick, progress, names=names)


def _without(pick: Pick, more: Sequence[str]) -> Pick:
    return msgspec.structs.replace(pick, without=[*pick.without, *more])


def _source(run: Pull, *, everything: bool) -> str:
    return run.folder if everything else f"{run.folder}/{layout.OUTPUTS}"


def _links(host: Host, script: str, folder: str, run: str) -> list[str]:
    """Return the links below work/ that point into the code, which is not a result."""
    pattern = re.sub(r"([*?\[\\])", r"\\\1", f"{layout.project_of(run)}/snapshots/") + "*"
    answer = host.run(layout.fill_in(script), folder, pattern, timeout=600)
    return [os.fsdecode(name) for name in answer.out.split(b"\0") if name]
