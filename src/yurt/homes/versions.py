"""The versions of conflicting paths on each place: what they are, whether they are equal, and how they differ."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from yurt.contexts.fan_out import side_by_side
from yurt.errors import NotFoundError, RefusedError, YurtError
from yurt.homes.places import Place
from yurt.model import site_words as words

SCRIPT = Path(__file__).with_name("look.sh")
LARGEST = 64_000_000
"""Bytes; larger files are not read, so two that were made equal by hand count as different."""
LARGEST_DIFF = 1_000_000
TIMEOUT = 600.0
Kind = Literal["file", "folder", "link", "deleted", "other", "unknown"]
KINDS: dict[bytes, Kind] = {b"f": "file", b"d": "folder", b"l": "link", b"-": "deleted"}

CONTENT = """\
cd -- "$1" && [ -f "./$2" ] && [ ! -h "./$2" ] && [ "$(wc -c < "./$2")" -le "$3" ] && cat -- "./$2"
"""


class HomeVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What a place has at a path. Unknown if the place cannot be reached."""

    kind: Kind
    """What it is; `unknown` if the place cannot be reached."""
    size: int = 0
    """Bytes of a file."""
    time: float = 0
    """When it was changed last."""
    mode: str = ""
    """The permissions, in octal digits."""
    target: str = ""
    """Where a link leads."""
    files: int = 0
    """The number of files in a folder."""
    digest: str = ""
    """A checksum of the content of a file; empty for files of more than 64 MB."""

    def same(self, other: HomeVersion) -> bool:
        """Whether the versions are known to be equal, so that there is no conflict."""
        if self.kind != other.kind or self.kind in ("other", "unknown"):
            return False
        if self.kind == "folder":  # what is in them is not part of this conflict
            return self.mode == other.mode
        if self.kind == "link":
            return self.target == other.target
        if self.kind == "deleted":
            return True
        return bool(self.digest) and (self.digest, self.mode) == (other.digest, other.mode)


UNKNOWN = HomeVersion(kind="unknown")


def look(
    places: Sequence[Place], paths: Mapping[str, Sequence[str]]
) -> tuple[dict[str, dict[str, HomeVersion]], list[YurtError]]:
    """Return by place the versions of its paths, in one operation per place, and the errors of unreachable places."""
    found: dict[str, dict[str, HomeVersion]] = {}
    errors: list[YurtError] = []

    def ask(place: Place) -> None:
        wanted = list(paths[place.name])
        try:
            answer = place.run(SCRIPT.read_text(), place.root, str(LARGEST), *wanted, timeout=TIMEOUT)
            if answer.code:
                raise RefusedError(f"cannot look at {place.root} on {place.name}: {answer.errors}", code="site-refused")
            with place.host.reading():
                found[place.name] = dict(zip(wanted, _read(answer.out), strict=True))
        except YurtError as error:
            found[place.name] = dict.fromkeys(wanted, UNKNOWN)
            errors.append(error)

    side_by_side(ask, [place for place in places if paths.get(place.name)])
    return found, errors


def _read(out: bytes) -> list[HomeVersion]:
    values = out.split(b"\0")[:-1]
    found = []
    for at in range(0, len(values), 7):
        kind, size, time, mode, target, digest, files = values[at : at + 7]
        found.append(
            HomeVersion(
                kind=KINDS.get(kind, "other"),
                size=words.whole(size.decode() or "0"),
                time=words.moment(time.decode() or "0"),
                mode=_mode(mode),
                target=os.fsdecode(target),
                digest=digest.decode(errors="replace").split(" ", 1)[0],
                files=words.whole(files.decode().strip() or "0"),
            )
        )
    return found


def _mode(digits: bytes) -> str:
    """Return a mode without the bits that change whose rights a program has. ValueError if it is none."""
    if not re.fullmatch(rb"[0-7]{0,4}", digits):
        raise ValueError(f"{words.shown(os.fsdecode(digits))} is not a mode")
    return f"{int(digits, 8) & 0o777:o}" if digits else ""


def diff(path: str, one: Place, two: Place) -> bytes:
    """Return the difference of two text files of at most 1 MB, as `diff -u` prints it.

    NotFoundError: one of them is not a file, is larger, or is not text.
    """
    contents = [_content(place, path) for place in (one, two)]
    with tempfile.TemporaryDirectory(prefix="yurt-diff-") as folder:
        files = [Path(folder, name) for name in ("one", "two")]
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        labels = [f"{place.name}: {os.fsencode(path).decode(errors='backslashreplace')}" for place in (one, two)]
        command = ["diff", "-u", "-L", labels[0], "-L", labels[1], *(str(file) for file in files)]
        try:
            return subprocess.run(command, capture_output=True, check=False).stdout
        except FileNotFoundError:
            raise RefusedError(
                "program 'diff' not found on this machine", code="program-missing", hint="install `diff`"
            ) from None


def _content(place: Place, path: str) -> bytes:
    answer = place.run(CONTENT, place.root, path, str(LARGEST_DIFF))
    if answer.code or b"\0" in answer.out:
        raise NotFoundError(f"'{path}' on {place.name} is not a text file of at most 1 MB", code="not-found")
    return answer.out
