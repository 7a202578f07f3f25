"""The copies of files that grow on a site, on this machine: only ever appended to.

A file that was replaced or shortened on its site gets a new copy, in the folder of the next generation. What a killed
process has copied is kept: the size of a copy says where to continue.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from yurt import private
from yurt.config import paths
from yurt.model import layout
from yurt.model.growth import OVERLAP, Kind, Known
from yurt.model.site_words import PathBelow

SEEN = "seen"
"""What the site said of each file: lines of JSON, the last one of a file counts."""

COMPLETE = ":complete"
"""Instead of a path in that file: the kinds of files of a run that has ended of which everything has come."""

LARGE = 1 << 18
"""Bytes from which on that file is rewritten without the lines that no longer count."""


class Copy(msgspec.Struct, frozen=True):
    """The copy of a file of a run."""

    path: str
    """Relative to the folder of the run or sweep on its site."""
    file: Path
    size: int
    generation: int
    """How often the file was replaced."""


def folder(run: str) -> Path:
    """Return the folder with the copies of a run or a sweep. It may not exist."""
    return paths.data_home() / "followed" / run


class Followed:
    """The copies of one run or sweep. Only one process at a time may change them: see `follow.py`."""

    def __init__(self, run: str) -> None:
        self.folder = folder(run)
        self._seen = self._read_seen()
        self._noted: list[bytes] = []
        self._open: _Open | None = None
        self.incomplete = False
        """Whether a file was replaced, so that its beginning has still to be read."""

    def copies(self) -> dict[str, Copy]:
        """Return the newest copy of each file, by path."""
        found: dict[str, Copy] = {}
        for generation in self._generations():
            base = self.folder / str(generation)
            for above, _folders, names in os.walk(base):
                for name in names:
                    file = Path(above, name)
                    path = file.relative_to(base).as_posix()
                    with suppress(FileNotFoundError):  # another process has just replaced it
                        found[path] = Copy(path, file, file.stat().st_size, generation)
        return dict(sorted(found.items()))

    def known(self) -> list[Known]:
        """Return the same for a request to the site."""
        return [Known(each.path, each.size, self._seen.get(each.path, "")) for each in self.copies().values()]

    def begin(self, path: str, seen: str, start: int) -> None:
        """Receive bytes of a file; see `model.growth.Reader`."""
        usable = PathBelow.fits(path) and seen.isprintable()
        self._open = _Open(path, seen, start, self._newest(path)) if usable else None

    def more(self, part: bytes) -> int:
        """Receive bytes; return how many of them are new."""
        if self._open is None:
            return 0
        if self._open.checked:
            return self._append(self._open, part)
        self._open.held += part
        return self._check(self._open) if len(self._open.held) >= self._open.overlap else 0

    def end(self) -> int:
        """The file is complete as far as the site has it; return how many bytes were new."""
        this, self._open = self._open, None
        if this is None:
            return 0
        new = 0 if this.checked else self._check(this)
        if not this.again:
            self._note(this.path, this.seen)
        return new

    def put(self, path: str, content: bytes) -> None:
        """Make a copy from what this machine has anyway, unless there is one."""
        if self._newest(path) is None:
            self._write(self.folder / "0" / path, content)

    def save(self) -> None:
        """Save what the site said of the files. If this is lost or damaged, the copies are compared again."""
        if not self._noted:
            return
        paths.make_private(self.folder)
        file = self.folder / SEEN
        with open(file, "ab", opener=private.opener) as stream:
            stream.write(b"\n" + b"".join(self._noted))  # the last line may be that of a killed process
            large = stream.tell() > LARGE
        self._noted = []
        if large:
            paths.write_private(file, b"".join(_line(path, seen) for path, seen in self._seen.items()))

    def _note(self, path: str, seen: str) -> None:
        """Remember what the site said of a file; nothing: that its copy has to be compared."""
        if self._seen.get(path, "") == seen:
            return
        self._seen[path] = seen
        self._noted.append(_line(path, seen))

    def note_complete(self, prefix: str, kinds: Sequence[Kind]) -> None:
        """Note that a run, or the task with this prefix, has ended, and that everything of these kinds has come."""
        self._note(f"{prefix}{COMPLETE}", " ".join(sorted({*kinds, *self._kinds(prefix)})))

    def is_complete(self, prefix: str, kinds: Sequence[Kind]) -> bool:
        return {*kinds} <= {*self._kinds(prefix)}

    def _kinds(self, prefix: str) -> list[str]:
        return self._seen.get(f"{prefix}{COMPLETE}", "").split()

    def ended(self, prefix: str = "") -> bool:
        """Whether the run, or the task with this prefix of its paths, has ended."""
        return any(self._seen.get(f"{prefix}{name}") for name in layout.written(layout.EXIT))

    def ended_tasks(self) -> int:
        """Return how many tasks of a sweep have ended."""
        ends = tuple(f"/{name}" for name in layout.written(layout.EXIT))
        return sum(path.startswith(f"{layout.TASKS}/") and path.endswith(ends) for path in self._seen)

    def _check(self, this: _Open) -> int:
        """Compare the first bytes with the end of the copy; make a new copy if they differ."""
        held, this.held, this.checked = this.held, b"", True
        copy = this.copy
        if copy is None:
            this.file = self.folder / "0" / this.path
            return self._append(this, held)
        with copy.file.open("rb") as file:
            file.seek(this.start)
            same = not this.shortened and held[: this.overlap] == file.read(this.overlap)
        if same and len(held) >= this.overlap:
            this.file = copy.file
            return self._append(this, held[this.overlap :])
        self._note(this.path, "")
        this.file = self.folder / str(copy.generation + 1) / this.path
        this.again = self.incomplete = this.start > 0
        new = self._append(this, b"" if this.again else held)
        copy.file.unlink(missing_ok=True)
        return new

    def _append(self, this: _Open, part: bytes) -> int:
        if this.again:
            part = b""
        self._write(this.file, part)
        return len(part)

    def _write(self, file: Path, part: bytes) -> None:
        if not file.exists():
            paths.make_private(file.parent)
        with open(file, "ab", opener=private.opener) as stream:
            stream.write(part)

    def _newest(self, path: str) -> Copy | None:
        for generation in reversed(self._generations()):
            file = self.folder / str(generation) / path
            if file.is_file():
                return Copy(path, file, file.stat().st_size, generation)
        return None

    def _generations(self) -> list[int]:
        try:
            return sorted(int(each.name) for each in self.folder.iterdir() if each.name.isdigit())
        except OSError:
            return []

    def _read_seen(self) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            lines = (self.folder / SEEN).read_bytes().split(b"\n")
        except OSError:
            return found
        for line in lines:
            with suppress(msgspec.MsgspecError):  # of a killed process
                path, seen = msgspec.json.decode(line, type=tuple[str, str])
                found[path] = seen
        return found


def _line(path: str, seen: str) -> bytes:
    return msgspec.json.encode((path, seen)) + b"\n"


class _Open:
    """A file whose bytes are being received."""

    def __init__(self, path: str, seen: str, start: int, copy: Copy | None) -> None:
        self.path, self.seen, self.start, self.copy = path, seen, start, copy
        self.held = b""
        self.checked = False
        self.again = False
        """Whether the file has to be read from its beginning."""
        self.file = Path()
        size = 0 if copy is None else copy.size
        self.shortened = start > size or (start == 0 and size > OVERLAP)
        self.overlap = 0 if self.shortened else size - start
