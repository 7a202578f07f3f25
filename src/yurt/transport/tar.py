"""Fetches a folder of a host as tar streams if rsync is missing on either side. Files appear only when complete.

A site may send any archive: of its members only requested files are accepted, and their names decide where they go.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tarfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from yurt.errors import RefusedError, here_is_full
from yurt.model.files import Brought, Pick, Progress
from yurt.model.site_words import moment, whole
from yurt.transport import room
from yurt.transport.base import Host, not_requested, refusal
from yurt.transport.rsync_process import PARTIAL, SILENCE
from yurt.transport.stream import Stream

LIST = r"""
cd "$1" || exit 1
export LC_ALL=C
if [ -n "$2" ]; then set -- ./*/; else set -- .; fi # the content of its folders and of links to folders
find "$@" \( -type f -o -type l \) -printf '%s %T@ %l\0%p\0' 2> /dev/null ||
  find "$@" \( -type f -o -type l \) -exec sh -c 'for each; do printf "\0%s\0" "$each"; done' yurt {} +
"""
"""Prints size, modification time and link target of each file; empty fields if find has no -printf."""

SEND = r"""
cd "$1" || exit 1
shift
export LC_ALL=C
if tar -c -f /dev/null --null -T /dev/null 2> /dev/null; then
  printf '%s\0' "$@" | tar -c -f - --no-recursion --null -T -
else # busybox
  tar -c -f - "$@"
fi
"""

BATCH = 1 << 20
"""Maximum bytes of file names in one call."""


def bring(
    host: Host, source: str, target: Path, pick: Pick, progress: Progress, *, names: Sequence[str] = ()
) -> Brought:
    """Fetch the content of a folder on the host into a local folder. Files with equal size and time are not sent again.

    `names` are all folders, or links to folders, in that folder: if given, only their content is fetched.
    UnreachableError: complete files are kept, and the next call fetches the rest.
    """
    matched, wanted, total = _compare(host, source, target, pick, names)
    room.check(target, total)
    partial = target / PARTIAL
    files = size = replaced = 0
    below = {name: [0, 0, matched.get(name, 0)] for name in names}
    vanished = False

    def report(part: int) -> None:
        progress(min(total, size + part) if total else size + part, total)

    try:
        for batch in batches(wanted):
            with host.stream(SEND, source, *batch, silence=SILENCE) as stream:
                requested = frozenset(each.removeprefix("./") for each in batch)
                for name, each, existed in _extract(stream, target, partial, requested, report, backup=pick.backup):
                    files, size, replaced = files + 1, size + each, replaced + existed
                    if name in below:
                        below[name] = [below[name][0] + 1, below[name][1] + each, below[name][2]]
                    report(0)
                errors = stream.err.decode(errors="replace").strip()
                if stream.code and not re.search("changed as we read|removed before we read|No such file", errors):
                    raise refusal(host.name, "some files could not be fetched", errors)
                vanished = vanished or bool(stream.code)
    except NotRequested as error:
        raise not_requested(host.name, str(error)) from None
    except (tarfile.TarError, ValueError, OverflowError) as error:  # the last two: impossible names and times
        raise RefusedError(f"{host.name}: received an invalid tar archive: {error}", code="site-refused") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(target, error.strerror or "") from None
        file = error.filename or target
        raise RefusedError(f"cannot write to {file}: {error.strerror}", code="cannot-write") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    parts = {
        name: Brought(files=sent, size=bytes_, matched=selected, vanished=vanished)
        for name, (sent, bytes_, selected) in below.items()
    }
    return Brought(
        files=files, size=size, matched=sum(matched.values()), vanished=vanished, replaced=replaced, below=parts
    )


FILE = """\
find "$1" -printf '%s %T@ %m\\0' 2> /dev/null || { wc -c < "$1" && printf ' 0 644\\0'; }
"""
"""Prints size, modification time and mode of a file."""


def bring_file(host: Host, source: str, target: Path, progress: Progress) -> tuple[int, int, int]:
    """Fetch one file; return how many files and bytes were sent, and how many were up to date."""
    answer = host.run(FILE, source)
    if answer.code:
        raise refusal(host.name, f"cannot read {source}", answer.errors)
    with host.reading():
        size, changed, mode = answer.text.rstrip("\0").split()
        facts, executable = Facts.read(f"{size} {changed}"), bool(int(mode, 8) & EXECUTE)
    if _is_up_to_date(target, facts):
        return 0, 0, 1
    progress(0, facts.size)
    kept = _mode(target)
    try:
        host.get(source, target, executable=executable)
        if kept is not None:
            target.chmod(kept)
        if facts.changed:
            os.utime(target, (facts.changed, facts.changed))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(target, error.strerror or "", hint=AGAIN) from None
        raise RefusedError(f"cannot write to {target}: {error.strerror}", code="cannot-write") from None
    progress(facts.size, facts.size)
    return 1, facts.size, 0


AGAIN = "free some space, then run the command again"

EXECUTE = 0o111


class Facts(NamedTuple):
    """What a host says about a file before it sends it."""

    size: int
    changed: float
    link: str
    """What it points to, if it is a link."""

    @classmethod
    def read(cls, text: str) -> Facts:
        """Return the facts in a listing. ValueError if they are impossible."""
        size, _, rest = text.partition(" ")
        changed, _, link = rest.partition(" ")
        return cls(whole(size), moment(changed), link)


class NotRequested(Exception):
    """An archive contains a file that was not requested; its name."""


def _compare(
    host: Host, source: str, target: Path, pick: Pick, names: Sequence[str]
) -> tuple[dict[str, int], list[str], int]:
    """Return the number of selected files by first path component; the names of those to fetch, and their size."""
    answer = host.run(LIST, source, "yes" if names else "", timeout=600)
    if answer.code:
        raise refusal(host.name, "cannot list the files", answer.errors)
    parts = answer.out.decode(errors="surrogateescape").split("\0")
    matched: dict[str, int] = {}
    wanted, total = [], 0
    without, folders = frozenset(pick.without), frozenset(names)
    no_git = pick.backup or pick.no_git
    with host.reading():
        for said, name in zip(parts[::2], parts[1::2], strict=False):
            facts = Facts.read(said) if said else None
            path = name.removeprefix("./")
            first, *_below = names_in_path = path.split("/")
            if (folders and first not in folders) or not {"", ".", ".."}.isdisjoint(names_in_path):
                raise not_requested(host.name, path)
            kept_out = PARTIAL in names_in_path or (no_git and any(name.lower() == ".git" for name in names_in_path))
            if not kept_out and chosen(path, pick, without):
                matched[first] = matched.get(first, 0) + 1
                if facts is None or not _is_up_to_date(target / path, facts):
                    wanted.append(name)
                    total += facts.size if facts else 0
    return matched, wanted, total


def chosen(path: str, pick: Pick, without: Collection[str] | None = None) -> bool:
    """Whether a file is selected, by the rules of rsync. `without`: as in `pick`, as a set."""
    without = frozenset(pick.without) if without is None else without
    if path in without or any(path[: found.start()] in without for found in re.finditer("/", path)):
        return False
    return not pick.only or any(_pattern(glob).search(f"/{path}") for glob in pick.only)


def _pattern(glob: str) -> re.Pattern[str]:
    """Translate an rsync pattern to a regular expression. It matches the end of a path; a leading slash anchors it."""
    text, at = "" if glob.startswith("/") else "(?:^|/)", 0
    while at < len(glob):
        if glob.startswith("**", at):
            text, at = text + ".*", at + 2
            continue
        character = glob[at]
        closed = glob.find("]", at + 2) if character == "[" else -1
        if closed > 0:
            inside = glob[at + 1 : closed].replace("\\", "\\\\")
            text += f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            at = closed
        elif character == "\\" and at + 1 < len(glob):
            at += 1
            text += re.escape(glob[at])
        else:
            text += {"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character))
        at += 1
    return re.compile(("^" if glob.startswith("/") else "") + text + "$", re.DOTALL)


def _is_up_to_date(path: Path, facts: Facts) -> bool:
    try:
        found = path.lstat()
        if facts.link:
            return os.readlink(path) == facts.link
    except OSError:
        return False
    return (found.st_size, int(found.st_mtime)) == (facts.size, int(facts.changed))


def batches(names: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for name in names:
        batch.append(name)
        length += len(name) + 3
        if length > BATCH:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


LONGEST_END = 1 << 20
"""Bytes after the end of an archive: tar fills its last record, of some kilobytes."""

LONGEST_HEADER = 16 << 20
"""Bytes before the content of a file: its name and its attributes."""


class _Reader:
    """Adapts a stream of chunks to the file interface of tarfile."""

    def __init__(self, stream: Stream) -> None:
        self._chunks, self._held, self._left = iter(stream), bytearray(), LONGEST_HEADER

    def refill(self) -> None:
        """Note that what was read so far was used: tarfile keeps what precedes a file in memory."""
        self._left = LONGEST_HEADER

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise tarfile.ReadError("it has an endless header")
        while len(self._held) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._held += chunk
        part = bytes(self._held[:size])
        del self._held[:size]
        return part

    def rest(self) -> None:
        """Read the rest of the stream; the exit code is set only at its end."""
        left = LONGEST_END
        for chunk in self._chunks:
            left -= len(chunk)
            if left < 0:
                raise tarfile.ReadError("it does not end")


def _extract(
    stream: Stream,
    target: Path,
    partial: Path,
    requested: Collection[str],
    progress: Callable[[int], None] = lambda _part: None,
    *,
    backup: bool = False,
) -> Iterator[tuple[str, int, bool]]:
    """Extract the archive into `target`; yield of each complete file its first path component, size, and if it existed.

    NotRequested: it contains another file than these, or one twice. HereIsFullError: a file does not fit on the disk;
    with holes, it can be larger than all that the site sends. `progress` receives the bytes of the current file.
    `backup`: keep a file that is replaced as NAME~. A file that is replaced keeps its mode; a new one gets that of the
    user's umask.
    """
    reader = _Reader(stream)
    came, left = set[str](), set(requested)
    with tarfile.open(fileobj=reader, mode="r|", errors="surrogateescape") as archive:  # type: ignore[call-overload]
        for member in archive:
            reader.refill()
            name = member.name.removeprefix("./")
            if name not in left:
                raise NotRequested(name)
            left.remove(name)
            if member.size < 0:
                raise tarfile.ReadError("a file has a negative size")
            if not (member.issym() or member.islnk() or member.isreg()):
                continue
            if partial.is_symlink():
                partial.unlink()
            partial.mkdir(mode=0o700, exist_ok=True)
            made = partial / "file"
            made.unlink(missing_ok=True)
            if member.islnk():
                if (earlier := member.linkname.removeprefix("./")) not in came:
                    raise NotRequested(f"{name} -> {earlier}")
                _copy(target / earlier, made, member)
            elif member.issym():
                made.symlink_to(member.linkname)
            else:
                room.check(target, member.size)
                with _create(made, member) as file:
                    content = archive.extractfile(member)
                    while part := content.read(1 << 18) if content is not None else b"":
                        reader.refill()
                        file.write(part)
                        progress(file.tell())
                os.utime(made, (member.mtime, member.mtime))
            *folders, last = name.split("/")
            file_here = _folder(target, folders) / last
            existed, kept = os.path.lexists(file_here), _mode(file_here)
            if kept is not None and not made.is_symlink():
                made.chmod(kept)
            if backup and existed and not file_here.is_dir():
                os.replace(file_here, f"{file_here}~")
            os.replace(made, file_here)
            came.add(name)
            yield name.partition("/")[0], member.size, existed
    reader.rest()


def _create(path: Path, member: tarfile.TarInfo) -> IO[bytes]:
    """Create a file with the mode that the user's umask gives to new files; programs stay executable."""
    mode = 0o777 if member.mode & EXECUTE else 0o666
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def _copy(earlier: Path, path: Path, member: tarfile.TarInfo) -> None:
    """Copy a file of the same archive, of which this is another name."""
    if earlier.is_symlink():
        path.symlink_to(os.readlink(earlier))
        return
    with earlier.open("rb") as source, _create(path, member) as file:
        shutil.copyfileobj(source, file)
    os.utime(path, (member.mtime, member.mtime))


def _mode(path: Path) -> int | None:
    """Return the permissions of a file on this machine; None if there is none."""
    try:
        found = path.lstat().st_mode
    except OSError:
        return None
    return found & 0o777 if stat.S_ISREG(found) else None


def _folder(target: Path, parts: Sequence[str]) -> Path:
    """Create a folder below the target. Links on the path are replaced: nothing is written through a link."""
    folder = target
    for part in parts:
        folder /= part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            folder.unlink()
        folder.mkdir(exist_ok=True)
    return folder
