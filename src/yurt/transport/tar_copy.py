"""Copies files to a host, or between two hosts, as tar streams if rsync is missing on one side.

Files appear only when they are complete; those with equal size and time are not sent again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from yurt.errors import RefusedError
from yurt.model.data import Moved
from yurt.model.files import Progress
from yurt.model.site_words import count
from yurt.transport import protected, tar, tar_stream
from yurt.transport.base import Host, refusal
from yurt.transport.pour import Source, pour
from yurt.transport.rsync_process import PARTIAL, SILENCE
from yurt.transport.side import Side
from yurt.transport.stream import Stream
from yurt.transport.tar_stream import Entry

PREPARE = (
    r"""
if [ -e "$1" ] && [ ! -d "$1" ]; then echo "'$1' is a file, not a folder" >&2; exit 1; fi
p=$1
until [ -z "$p" ] || [ -e "$p" ]; do p=${p%/*}; done
if [ -n "$p" ] && [ ! -d "$p" ]; then echo "'$p' is a file, not a folder" >&2; exit 1; fi
mkdir -p -- "$1" || exit 1
if [ -n "$3" ] && [ -d "$1/$3" ]; then echo "'$1/$3' is a folder, not a file" >&2; exit 1; fi
"""
    + r"""
if [ -n "$3" ]; then
  cd "$1" || exit 1
  find "./$3" \( -type f -o -type l \) -printf '%s %T@ %l\0%p\0' 2> /dev/null
  exit 0
fi
"""
    + tar.LIST
)
"""Makes a target folder and lists its files. Arguments: FOLDER, an empty one, the NAME of the only file or nothing."""

RECEIVE = r"""
cd "$1" || exit 1
export LC_ALL=C
name=$2 aside=@PARTIAL@/tar.$$
rm -rf @PARTIAL@ && mkdir -p "$aside" && cd "$aside" || exit 1
trap 'cd ../.. && rm -rf @PARTIAL@' EXIT
echo at 0
tar -x -f - || exit 1
if [ -n "$name" ]; then
  for each in ./* ./.[!.]* ./..?*; do
    [ -e "$each" ] || [ -L "$each" ] || continue
    mv -f -- "$each" "../../$name" || exit 1
  done
  exit 0
fi
find . -type d -exec sh -c '
  for each; do
    if [ -d "$each" ] && [ ! -e "../../$each" ]; then mv -- "$each" "../../$each" || exit 1; fi
  done' yurt {} + 2> /dev/null
find . ! -type d -exec sh -c '
  for each; do
    if [ -d "../../$each" ] && [ ! -L "../../$each" ]; then echo "$each is a folder, not a file" >&2; exit 1; fi
    mv -f -- "$each" "../../$each" || exit 1
  done' yurt {} +
""".replace("@PARTIAL@", PARTIAL)
"""Extracts an archive aside and moves what is complete. Arguments: FOLDER, the NAME of the only file or nothing."""

NO_SPACE = "No space left on device"

BATCH, FILES = 256 << 20, 2000
"""How many bytes and files are sent at once: what an interrupted call has to send again."""


def put(side: Side, sources: Sequence[str], progress: Progress, *, folder: bool) -> Moved:
    """Copy files and folders of this machine to a host, as `rsync_copy.put` does.

    UnreachableError: complete files are kept, and the next call copies the rest.
    """
    entries: list[Entry] = []
    skipped: list[str] = []
    host = side.host
    base, name = (side.path, "") if folder else posixpath.split(side.path)
    for source in sources:
        root, below = source.rstrip("/"), "" if source.endswith("/") else posixpath.basename(source.rstrip("/"))
        found, special = tar_stream.walk(root) if Path(root).is_dir() else ([], [])
        own = tar_stream.entry(root, "") if below else None
        if own is not None:
            found = [own, *found] if own.is_folder else [own]
        named = name or below
        entries += [Entry(each.path, posixpath.join(named, each.name).rstrip("/"), *_rest(each)) for each in found]
        skipped += special
    there = listed(host, base, name, guarded=side.guard)
    files = [each for each in entries if not each.is_folder]
    wanted = [each for each in files if not _is_there(each, there)]
    folders = [each for each in entries if each.is_folder]
    total, done = sum(each.size for each in wanted), 0
    for number, batch in enumerate(_batches(wanted)):
        every = [*(folders if number == 0 else []), *batch]
        _send(host, (base, ""), partial(tar_stream.chunks, every), Part(done, total, progress))
        done += sum(each.size for each in batch)
    return Moved(files=len(wanted), size=total, unchanged=len(files) - len(wanted), skipped=skipped, way="tar")


def between(source: Side, target: Side, progress: Progress, *, folder: bool) -> Moved:
    """Copy a file or the content of a folder from one host to another, through this machine."""
    base, name = (target.path, "") if folder else posixpath.split(target.path)
    there = listed(target.host, base, name, guarded=target.guard)
    if folder:
        found = listed(source.host, source.path, "", make=False)
        wanted = [each for each, facts in found.items() if not facts or there.get(each) != facts]
        root = source.path
    else:
        root, only = posixpath.split(source.path)
        found, wanted = {only: ""}, [only]
    sizes = {each: count(found[each].partition(" ")[0]) for each in wanted}
    total, done = sum(sizes.values()), 0
    for batch in tar.batches([f"./{each}" for each in wanted]):
        with source.host.stream(tar.SEND, root, *batch, silence=SILENCE) as stream:
            _send(target.host, (base, name), partial(_all, stream), Part(done, total, progress))
            if stream.code:
                errors = stream.err.decode(errors="replace").strip()
                raise refusal(source.host.name, "some files could not be read", errors)
        done += sum(sizes[each[2:]] for each in batch)
    unchanged = len(found) - len(wanted)
    return Moved(files=len(wanted), size=total, unchanged=unchanged, way="tar through this machine")


def listed(host: Host, folder: str, name: str, *, make: bool = True, guarded: str = "") -> Mapping[str, str]:
    """Return size, time and link target of each file of a folder on the host. `make`: create it if it is missing."""
    script, arguments = (PREPARE, (folder, "", name)) if make else (tar.LIST, (folder, ""))
    answer = host.run(f"{guarded}\n{script}", *arguments, timeout=600)
    if answer.code:
        known = protected.refused(host, folder, answer.errors)
        raise known or refusal(host.name, f"cannot {'write' if make else 'read'} {folder}", answer.errors)
    parts = answer.out.decode(errors="surrogateescape").split("\0")
    return {path.removeprefix("./"): _whole(facts) for facts, path in zip(parts[::2], parts[1::2], strict=False)}


def _whole(facts: str) -> str:
    """Return the facts of a file with its time in whole seconds, as in an archive."""
    return re.sub(r"^(\d+ \d+)\.\d*", r"\1", facts)


def _is_there(each: Entry, there: Mapping[str, str]) -> bool:
    size, _, rest = there.get(each.name, "").partition(" ")
    changed, _, link = rest.partition(" ")
    if each.link or link:
        return link == each.link
    return (size, changed) == (str(each.size), str(each.modified_ns // 10**9))


def _rest(each: Entry) -> tuple[int, int, int, str]:
    return each.mode, each.size, each.modified_ns, each.link


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for each in entries:
        batch.append(each)
        size += each.size
        if len(batch) >= FILES or size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Part(NamedTuple):
    """What was sent before, and in total; bytes."""

    done: int
    total: int
    progress: Progress

    def moved(self, at: int) -> None:
        self.progress(min(self.total, self.done + at), self.total)


def _send(host: Host, place: tuple[str, str], source: Source, part: Part) -> None:
    base, name = place
    answer = pour(host, RECEIVE, base, name, source=source, moved=part.moved)
    if answer.code:
        partly = "Wrote only" in answer.errors  # what tar of GNU prints of a full disk
        raise refusal(host.name, f"cannot write {base}", f"{answer.errors}\n{NO_SPACE if partly else ''}".strip())


def _all(stream: Stream, _at: int) -> Iterator[bytes]:
    return iter(stream)


def without_delete(delete: bool) -> None:
    """RefusedError if files should be deleted, which only rsync does."""
    if delete:
        raise RefusedError(
            "--delete needs rsync on both sides",
            code="program-missing",
            hint="install rsync, or delete the files with `yurt data rm`",
        )
