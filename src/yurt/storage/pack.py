"""Uploads a folder as one archive, and downloads one into a folder: shared file systems like few files.

The archive of the same files is the same everywhere. So an upload that was interrupted continues where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from yurt.errors import RefusedError, UnreachableError, UserError, here_is_full
from yurt.model.data import Moved
from yurt.model.files import Progress
from yurt.model.site_words import whole
from yurt.storage import here, transfer
from yurt.storage.contents import missing
from yurt.storage.spots import Spot
from yurt.transport import protected, tar_stream
from yurt.transport.base import refusal
from yurt.transport.pour import pour
from yurt.transport.rsync_copy import HINT
from yurt.transport.tar_stream import Entry

SCRIPT = Path(__file__).parent / "pack.sh"
INCOMPLETE = 45

LONGEST_NUMBER = 100
"""Bytes of the line with the size of an archive."""

READ = '[ -f "$1" ] || exit 44; wc -c < "$1"; cat -- "$1"'

COMPRESSED = {
    ".tar": [],
    ".tar.gz": ["-z"],
    ".tgz": ["-z"],
    ".tar.bz2": ["-j"],
    ".tar.xz": ["-J"],
    ".tar.zst": ["--zstd"],
}
"""Options of tar by the ending of an archive's name."""


def put(source: Path, target: Spot, progress: Progress, *, checksum: bool) -> tuple[Moved, str]:
    """Upload a folder as one tar archive; return what was done, and its path. Nothing is sent if it is there.

    UnreachableError: a retry continues if the folder has not changed.
    """
    transfer.check([source])
    transfer.check_target(target)
    if not source.is_dir():
        raise UserError(f"--pack: '{source}' is not a folder", code="usage", hint="copy a file without `--pack`")
    place = target.below(f"{transfer.named(source)}.tar") if target.inside else target
    if not place.path.endswith(".tar") or place.path.endswith("/.tar"):
        right = re.sub(r"(\.tar)?\.[A-Za-z0-9]{1,4}$", "", place.path)
        raise UserError(
            f"--pack: '{place}' does not end with .tar; yurt writes plain tar archives",
            code="usage",
            hint=f"use `{place.context.name}:{right}.tar`",
        )
    if place.here:
        here.check_apart([source], [Path(place.path)], delete=False)
    try:
        entries, special = tar_stream.walk(str(source.resolve()))
        digest = digest_of(entries, checksum=checksum)
    except OSError as error:
        raise RefusedError(f"cannot read '{error.filename}': {error.strerror}", code="cannot-write") from None
    files, total = sum(not each.is_folder for each in entries), tar_stream.size(entries)
    answer = pour(
        place.host,
        f"{place.guard()}\n{SCRIPT.read_text()}",
        place.path,
        digest,
        str(total),
        source=partial(tar_stream.chunks, entries),
        moved=lambda at: progress(at, total),
    )
    if answer.code == INCOMPLETE:
        raise UnreachableError(
            f"{place.host.name}: the upload is incomplete; what was uploaded is kept",
            code="connection-lost",
            hint="run the command again; it continues",
        )
    if answer.code:
        errors = [line for line in answer.errors.splitlines() if not re.search(r"records (in|out)|copied", line)]
        known = protected.refused(place.host, place.path, answer.errors)
        raise known or refusal(place.host.name, f"cannot write {place.path}", "\n".join(errors))
    if answer.text.strip() == "there":
        return Moved(unchanged=files, skipped=special, way="archive"), place.path
    return Moved(files=files, size=total, skipped=special, way="archive"), place.path


def digest_of(entries: Sequence[Entry], *, checksum: bool) -> str:
    """Return a digest of names, sizes, times and modes; with `checksum` also of the content."""
    whole = hashlib.sha256()
    for each in entries:
        facts = f"{each.mode:o} {each.size} {each.modified_ns // 10**9} {each.link}"
        whole.update(os.fsencode(each.name) + b"\0" + os.fsencode(facts) + b"\0")
        if checksum and not each.link and not each.is_folder:
            with Path(each.path).open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:32]


def ending(name: str) -> str:
    """Return the ending of an archive's name. UserError if it is not one."""
    found = next((each for each in COMPRESSED if name.endswith(each) and name != each), "")
    if not found:
        raise UserError(
            f"'{name}' is not the name of a tar archive", code="usage", hint=f"known endings: {', '.join(COMPRESSED)}"
        )
    return found


def get(source: Spot, target: Path, progress: Progress) -> Moved:
    """Download an archive and extract it into a new folder, which appears when it is complete.

    In a git repository of this machine, it extracts no .git, because git runs commands that it finds there.
    """
    words = COMPRESSED[ending(source.path.rpartition("/")[2])]
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise RefusedError(f"'{target}' exists already", code="cannot-write", hint="name another folder, or remove it")
    transfer.make(target.parent)
    aside = target.parent / f".{target.name}.yurt-unpack"
    _remove(aside)
    transfer.make(aside)
    try:
        size = _extract(source, aside, words, progress)
        no_git = here.in_repository(target) and _drop_git(aside)
        here.reset_modes(aside)
        files = sum(len(names) for _folder, _folders, names in os.walk(aside))
        os.replace(aside, target)
    except RecursionError:
        raise RefusedError(
            f"the folders in '{source}' are nested too deeply", code="cannot-write", hint="extract it on the site"
        ) from None
    finally:
        _remove(aside)
    return Moved(files=files, size=size, way="archive", no_git=no_git)


def _drop_git(folder: Path) -> bool:
    """Remove each .git below a folder; return whether there was one."""
    found = [
        Path(place, name)
        for place, folders, files in os.walk(folder)
        for name in (*folders, *files)
        if name.lower() == ".git"
    ]
    for each in found:
        _remove(each)
    return bool(found)


def _remove(path: Path) -> None:
    """Remove a file or folder, if it is there. Python's own function fails for folders that are nested too deeply."""
    if os.path.lexists(path):
        subprocess.run(["rm", "-rf", "--", path.absolute()], stderr=subprocess.DEVNULL, check=False)


def _extract(source: Spot, folder: Path, words: Sequence[str], progress: Progress) -> int:
    """Extract the archive; return its size."""
    size, received, head = -1, 0, b""
    process = subprocess.Popen(
        ["tar", "-x", "-o", *words, "-f", "-", "-C", str(folder)],  # -o: root does not take over owners
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert process.stdin is not None and process.stderr is not None
    try:
        with source.host.stream(READ, source.path, silence=60) as stream:
            for chunk in stream:
                part = chunk
                if size < 0:
                    head += chunk
                    line, newline, part = head.partition(b"\n")
                    if not newline and len(head) < LONGEST_NUMBER:
                        continue
                    with source.host.reading():
                        size = whole(line.decode().strip())
                received += len(part)
                try:
                    process.stdin.write(part)
                except BrokenPipeError:
                    break
                progress(received, size)
            else:
                if stream.code == 44:
                    raise missing(source)
                if stream.code or received != size:
                    why = stream.err.decode(errors="replace").strip() or "it changed while it was read"
                    raise refusal(source.host.name, f"cannot read {source.path}", why)
        errors = _ended(process)
    finally:
        process.kill()
        process.wait()
    if re.search("no space left|quota exceeded", errors, re.IGNORECASE):
        raise here_is_full(folder, errors, hint=HINT)
    if process.returncode:
        lines = errors.strip().splitlines() or [f"exit code {process.returncode}"]
        raise RefusedError(f"cannot extract {source}: {lines[0]}", code="cannot-write")
    return size


def _ended(process: subprocess.Popen[bytes]) -> str:
    """Wait for a process that has got all of its input; return its errors."""
    try:
        return process.communicate()[1].decode(errors="replace")
    except BrokenPipeError:
        assert process.stderr is not None
        return process.stderr.read().decode(errors="replace")
