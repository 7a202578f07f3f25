"""Downloads the files of one or many runs: with rsync, or as tar streams if one side has no rsync."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from yurt.backends import scripts
from yurt.backends.shell import ownership
from yurt.errors import RefusedError, YurtError
from yurt.model import layout
from yurt.model.files import Brought, Contents, Pick, Progress, Pull, marked_contents, read_contents
from yurt.transport import room, rsync, rsync_process, rsync_shell, wire
from yurt.transport.base import Host, refusal
from yurt.transport.ssh import SshHost

# Standard input: names and paths, one per line. Leftovers of a killed script are removed with those of code uploads.
LINK_FOLDERS = """\
umask 077
mkdir -p -- "$1" && cd "$1" || exit 1
while IFS= read -r name && IFS= read -r path; do ln -s -- "$path" "$name" || exit 1; done
"""
"""Makes a folder of links to run folders, named as on this machine, so that one transfer copies many runs."""

UNLINK_FOLDERS = 'rm -rf -- "$1"'

NOT_RESULTS = """\
only_links=$1
shift
for each; do printf '%s\\0' "$each" && not_results "$each" && printf '\\0' || exit 1; done
"""
"""Prints each run folder, the files in its working directory that are not results, and an empty entry."""

LOOK = (
    'folder=$1 mark=$2 room=$3; shift 3; found=$(printf "%s\\n" "$folder" | (yurt_main) 2> /dev/null) || exit 3; '
    'printf "%s\\n" "$mark" "$found" "$mark" >&2; '
    f'case $found in rsync*" $folder/{layout.OUTPUTS}"*) ;; *) exit 3 ;; esac; '
    f'case $found in *" $folder/{layout.WORK}"*) exit 3 ;; esac; '
    f'size=${{found%" $folder/{layout.OUTPUTS}"*}}; size=${{size%:*}}; '
    '[ "${size##*:}" -le "$room" ] 2> /dev/null || exit 3; '
)
"""Prints the contents of a run between marks, and exits unless rsync can fetch all of its results from its outputs,
and they fit on the disk of this machine."""

WITH_GIT = """\
for each; do
  found=$(find "$each/." -name '.[gG][iI][tT]' -print 2> /dev/null) || found=unknown
  [ -z "$found" ] || printf '%s\\n' "$each"
done
"""
"""Prints the run folders that contain a .git, or in which it cannot be searched."""

HAS_RSYNC = "command -v rsync > /dev/null 2>&1"

Transfer = Callable[..., tuple[str, Brought]]


def contents(host: Host, folders: Sequence[str]) -> tuple[dict[str, Contents], bool]:
    """Return the contents of run folders, and whether the host has rsync."""
    lines = "".join(f"{folder}\n" for folder in folders)
    answer = ownership.run(host, folders, _contents_script(), stdin=lines.encode(), timeout=600)
    if answer.code:
        raise refusal(host.name, "cannot read the run folders", answer.errors)
    with host.reading():
        return read_contents(answer.text, folders)


def _contents_script() -> str:
    return scripts.text("measure.sh") + scripts.text("contents.sh")


def outputs_at_once(
    host: Host, folder: str, target: Path, pick: Pick, progress: Progress
) -> tuple[Contents, Brought | None] | None:
    """Look at a run folder and fetch its outputs in one session; see `Files.outputs_at_once`."""
    if not isinstance(host, SshHost) or "\n" in folder or not rsync_process.usable() or not rsync_shell.is_direct(host):
        return None
    script, calls = ownership.parts([folder], _contents_script())
    name = wire.kept_name(script)
    if name not in (host.kept() or ()):
        return None  # contents() sends it
    if pick.backup or (pick.selects and not rsync_process.refuses_other_files()):
        return None
    mark = f"yurt-contents-{os.urandom(8).hex()}"
    before = f"yurt_first={shlex.quote(calls.rstrip().replace(chr(10), '; '))}; {wire.load_kept(name)}; {LOOK}"
    source = f"{folder}/{layout.OUTPUTS}"
    try:
        errors, brought = rsync.bring_after(
            host,
            source,
            target,
            pick,
            progress,
            script=before,
            arguments=[folder, mark, str(room.free(target))],
        )
    except rsync_process.Strange:  # nothing was fetched; the usual way finds out what is wrong
        return None
    with host.reading():
        found = marked_contents(errors, mark, folder)
    return None if found is None else (found, brought)


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
    sizes = [run.size for run in runs]
    if everything or None in sizes or sum(each or 0 for each in sizes) > room.free(target):
        pick = msgspec.structs.replace(pick, check_room=True)
    bring: Transfer = partial(transfer, host, has_rsync=has_rsync)
    way, brought = _pull(host, runs, target, pick, progress, transfer=bring, everything=everything)
    if not pick.backup:
        return way, brought
    partly = host.run(WITH_GIT, *(run.folder for run in runs), timeout=600).text.splitlines()
    names = [run.name for run in runs if run.folder in partly]
    below = {name: _incomplete(each) if name in names else each for name, each in brought.below.items()}
    brought = msgspec.structs.replace(brought, below=below)
    return way, _incomplete(brought) if names else brought


def _incomplete(brought: Brought) -> Brought:
    return msgspec.structs.replace(brought, vanished=True)


def _pull(
    host: Host,
    runs: Sequence[Pull],
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    transfer: Transfer,
    everything: bool,
) -> tuple[str, Brought]:
    several = len(runs) > 1
    if everything:
        return _pull_part(host, runs, target, pick, progress, transfer=transfer, part="", several=several)
    # Working directories first: outputs replace a file of the same name.
    method, done = "", []
    refused: RefusedError | None = None
    for part in (layout.WORK, layout.OUTPUTS):
        having = [run for run in runs if (run.work if part == layout.WORK else run.outputs)]
        if having:
            try:
                method, brought = _pull_part(
                    host, having, target, pick, progress, transfer=transfer, part=part, several=several
                )
                done.append(brought)
            except RefusedError as error:  # such as a file that cannot be read; the others are fetched anyway
                if error.code not in ("site-refused", "cannot-write"):
                    raise
                refused = refused or error
    if refused is not None:
        raise refused
    return method, _total(done, [run.name for run in runs] if several else [])


def _pull_part(
    host: Host,
    runs: Sequence[Pull],
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    transfer: Transfer,
    part: str,
    several: bool,
) -> tuple[str, Brought]:
    """Fetch one folder of each run; the complete run folders if `part` is empty."""
    without, hidden = _not_results(host, runs, part, pick) if part != layout.OUTPUTS else ({}, {})
    below = f"/{part}" if part else ""
    pick = msgspec.structs.replace(pick, files_only=part == layout.WORK)
    if not several:
        (run,) = runs
        wanted = _without(pick, without.get(run.folder, ()))
        method, brought = transfer(f"{run.folder}{below}", target, wanted, progress)
        return method, msgspec.structs.replace(brought, hidden=hidden.get(run.folder, 0))
    # Through a folder of links that have the local names.
    gathered = f"{layout.project_of(runs[0].folder)}/incoming/fetch.{os.urandom(4).hex()}"
    lines = "".join(f"{run.name}\n{run.folder}{below}\n" for run in runs)
    try:
        answer = ownership.run(host, [runs[0].folder], LINK_FOLDERS, gathered, stdin=lines.encode(), timeout=600)
        if answer.code:
            raise refusal(host.name, "cannot link the run folders", answer.errors)
        only = [f"/*{glob}" if glob.startswith("/") else glob for glob in pick.only]
        excluded = [f"{run.name}/{path}" for run in runs for path in without.get(run.folder, ())]
        wanted = _without(msgspec.structs.replace(pick, only=only), excluded)
        method, brought = transfer(gathered, target, wanted, progress, names=[run.name for run in runs])
        each_hidden = {run.name: hidden.get(run.folder, 0) for run in runs}
        below_each = {
            name: msgspec.structs.replace(each, hidden=each_hidden[name]) for name, each in brought.below.items()
        }
        return method, msgspec.structs.replace(brought, below=below_each)
    finally:
        with contextlib.suppress(YurtError):
            host.run(UNLINK_FOLDERS, gathered)


def _total(done: Sequence[Brought], names: Sequence[str]) -> Brought:
    """Add the results of transfers, also by name."""
    return Brought(
        files=sum(each.files for each in done),
        size=sum(each.size for each in done),
        matched=sum(each.matched for each in done),
        vanished=any(each.vanished for each in done),
        replaced=sum(each.replaced for each in done),
        hidden=sum(each.hidden for each in done),
        below={name: _total([each.below[name] for each in done if name in each.below], []) for name in names},
    )


def transfer(
    host: Host,
    source: str,
    target: Path,
    pick: Pick,
    progress: Progress,
    *,
    names: Sequence[str] = (),
    has_rsync: bool,
) -> tuple[str, Brought]:
    """Fetch a folder of the host; return the method and what was fetched. `has_rsync`: whether the host has it."""
    if has_rsync and rsync_process.usable():
        with contextlib.suppress(rsync_process.Strange):
            return "rsync", rsync.bring(host, source, target, pick, progress, names=names)
    from yurt.transport import tar  # slow to import

    return "tar", tar.bring(host, source, target, pick, progress, names=names)


def _selected(paths: Sequence[str], pick: Pick) -> int:
    """Return how many of these files are selected."""
    if not pick.only or not paths:
        return len(paths)
    from yurt.transport import tar  # slow to import

    return sum(tar.chosen(path, Pick(pick.only)) for path in paths)


def _without(pick: Pick, more: Sequence[str]) -> Pick:
    return msgspec.structs.replace(pick, without=[*pick.without, *more])


def _not_results(
    host: Host, runs: Sequence[Pull], part: str, pick: Pick
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return the paths in working directories that are not to be fetched; with no `part`, only links to the code.

    They are relative to the working directory, or to the run folder if there is no `part`. Also return how many of them
    are results with the same name as a file in the outputs of the run, and would be fetched otherwise.
    """
    script = scripts.text("measure.sh") + NOT_RESULTS
    answer = host.run(script, "" if part else "yes", *(run.folder for run in runs), timeout=600)
    if answer.code:
        raise refusal(host.name, "cannot read the working directories", answer.errors)
    found: dict[str, list[str]] = {}
    hidden: dict[str, int] = {}
    for block in answer.out.split(b"\0\0"):
        folder, *paths = [os.fsdecode(name) for name in block.strip(b"\0").split(b"\0")]
        hidden[folder] = _selected([path[2:] for path in paths if path.startswith("./")], pick)
        found[folder] = [path.removeprefix(f"{layout.WORK}/").removeprefix("./") if part else path for path in paths]
    if not part:
        for paths in found.values():
            paths.append("pycache")
    return found, hidden
