"""Reads what Unison prints in batch mode. Pure.

Names may contain newlines, and Unison prints them as they are. So entries are found by the text before the next entry,
not by lines.
"""

from __future__ import annotations

import os
import re

import msgspec

from yurt.errors import RefusedError
from yurt.homes.outcomes import Skipped
from yurt.model import site_words as words

_SUMMARY = re.compile(
    rb"^Synchronization (?:in)?complete at [^(\n]*\((?P<done>\d{1,18}) items? transferred,"
    rb"(?: \d+ partially transferred,)? \d+ skipped, \d+ failed\)\n",
    re.MULTILINE,
)
_ENTRY = re.compile(rb"^  (skipped|failed|partially transferred): ", re.MULTILINE)
# A line begins after a newline, or after a progress text, which Unison overwrites by a carriage return.
_ARROW = re.compile(
    rb"(?:^|(?<=\r))(?P<left>.{8}) (?P<arrow>--[-?]->|<-[-?]--|==[=?]=>|<=[=?]==|error) "
    rb"(?P<right>.{10}) (?P<path>.+?)  \n",
    re.MULTILINE | re.DOTALL,
)
_KEPT = re.compile(rb"(?:^|(?<=\r))(?P<left>.{8}) <=\?=> (?P<right>.{10}) (?P<path>.+?)  \n", re.MULTILINE | re.DOTALL)
_NO_CONTENT = re.compile(rb"^(?:deleted |props   |.{15}(?:deleted|props) | {9}error)")
_FAILED = re.compile(rb"^Failed \[", re.MULTILINE)
_PERCENT = re.compile(rb"(\d{1,3})%  [0-9:?-]+ ETA")
_SIDE = re.compile(rb"\n?^yurt-side (?P<token>\w+) (?P<place>\S+) (?P<word>\S+) (?P<text>.*)\n", re.MULTILINE)

NO_FILE = "has unknown file type"
"""Why Unison skips sockets, pipes and devices: they belong to one machine."""

CHANGED = "Destination updated during synchronization"

ROOT = "properties changed on both sides"
"""Why Unison skips two roots with different permissions. It is no conflict: each site decides how open homes are."""

NOT_DELETED = "would delete a file with nodeletion or nodeletionpartial set"
"""Why Unison skips a deletion with `-nodeletion`; also if a folder became a file."""

PARTLY = "not all of it could be copied; the next sync tries again"


class Side(msgspec.Struct, frozen=True):
    """A line of side.sh: which place, a word, and details."""

    place: str
    word: str
    text: str


class Kept(msgspec.Struct, frozen=True):
    """A path that is gone on one side, and that `-nodeletion` kept on the other."""

    path: str
    by_server: bool
    """Whether it is the server that still has it."""


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished Unison printed."""

    sides: list[Side] = []
    complete: bool = False
    """Whether Unison reached its end."""
    transferred: int = 0
    to_server: int = 0
    to_client: int = 0
    copied: list[str] = []
    """The paths of new and changed files and folders, relative to the roots."""
    skipped: list[Skipped] = []
    failed: list[Skipped] = []
    kept: list[Kept] = []
    harmless: bool = False
    """Whether something was skipped, and all of it is no conflict: the permissions of the roots, no files, or kept."""
    fatal: str = ""
    """The last words of a Unison that gave up, in one line."""

    @property
    def jobs_wait(self) -> bool:
        """Whether jobs of one of the sides wait for this sync."""
        return any(each.word == "begun" and each.text.endswith("waits") for each in self.sides)

    def said(self, word: str) -> Side | None:
        """Return the first line of a side with that word."""
        return next((each for each in self.sides if each.word == word), None)


def read(out: bytes, err: bytes, token: str) -> Printed:
    """Return what Unison printed to standard output and standard error; `token` marks the lines of side.sh."""
    sides = [
        Side(*(each[key].decode(errors="replace") for key in ("place", "word", "text")))
        for each in _SIDE.finditer(err)
        if each["token"] == token.encode()
    ]
    err = _SIDE.sub(b"", err)
    moves = [*_ARROW.finditer(out)]
    held = {below(each["path"]): each["right"].isspace() for each in _KEPT.finditer(out)}
    errors = {below(each["path"]) for each in moves if each["arrow"] == b"error"}
    summary = None
    for summary in _SUMMARY.finditer(err):  # noqa: B007 (the last one)
        pass
    if summary is None:
        nothing = b"\nNothing to do: " in b"\n" + err
        return Printed(sides=sides, complete=nothing, fatal="" if nothing else _last_words(err))
    entries = _entries(err[summary.end() :])
    skipped: list[Skipped] = []
    failed: list[Skipped] = []
    kept: list[Kept] = []
    for kind, text in entries:
        if kind == b"skipped":
            path, why = _split(text, err)
            if (not path and why == ROOT) or why.endswith(NO_FILE):
                continue
            if why == NOT_DELETED and path in held:
                kept.append(Kept(path, held[path]))
                continue
            (failed if path in errors else skipped).append(Skipped(path, why))
        else:
            failed.append(Skipped(below(text), _why_failed(text, out) if kind == b"failed" else PARTLY))
    bad = {each.path for each in failed if each.why != PARTLY}
    done = [each for each in moves if below(each["path"]) not in bad]
    return Printed(
        sides=sides,
        complete=True,
        transferred=int(summary["done"]),
        to_server=sum(each["arrow"].endswith(b">") for each in done),
        to_client=sum(each["arrow"].startswith(b"<") for each in done),
        copied=[below(each["path"]) for each in moves if not _NO_CONTENT.search(each[0])],
        skipped=skipped,
        failed=failed,
        kept=kept,
        harmless=bool(entries) and not skipped and not failed,
    )


def below(name: bytes) -> str:
    """Return a path below the roots, or an empty one for the roots. RefusedError: it leads elsewhere.

    Unison prints names that the other side sent, and scripts of yurt look at these paths and change their modes.
    """
    path = os.fsdecode(name)
    if path and any(part in ("", ".", "..") for part in path.split("/")):
        raise RefusedError(
            f"{words.shown(path)}, which Unison printed, is not a path below the home",
            code="site-invalid",
            hint="one of the homes has sent it; look at it on the site, or ask its administrators",
        )
    return path


def percent(text: bytes) -> int | None:
    """Return the last progress in a piece of standard output; None if there is none."""
    found = _PERCENT.findall(text)
    return min(100, int(found[-1])) if found else None


def _without_progress(out: bytes) -> bytes:
    """Return standard output without the texts that Unison overwrites by a carriage return."""
    return re.sub(rb"[^\r\n]*\r", b"", out)


def _entries(text: bytes) -> list[tuple[bytes, bytes]]:
    marks = [*_ENTRY.finditer(text)]
    starts = [each.start() for each in marks]
    return [
        (each[1], text[each.end() : end].removesuffix(b"\n"))
        for each, end in zip(marks, [*starts[1:], len(text)], strict=False)
    ]


def _split(text: bytes, err: bytes) -> tuple[str, str]:
    """Split `PATH (REASON)`. Both may contain parentheses, so the split that Unison printed before is the right one."""
    text = text.removesuffix(b")")
    at = text.find(b" (")
    while at >= 0:
        path, why = text[:at], text[at + 2 :]
        if b"Skipping " + path + b"\n  " + why + b"\n" in err:
            break
        at = text.find(b" (", at + 1)
    else:
        path, _, why = text.rpartition(b" (")
    return below(path), _one_line(why)


def _why_failed(path: bytes, out: bytes) -> str:
    _, found, rest = out.partition(b"Failed [" + path + b"]: ")
    if not found:
        return ""
    rest = _without_progress(rest)
    following = _FAILED.search(rest)
    why = _one_line(rest[: following.start()] if following else rest)
    return "it was changed during the sync; sync again" if why.startswith(CHANGED) else why


def _last_words(err: bytes) -> str:
    _, found, rest = err.rpartition(b"Fatal error: ")
    if found:
        return _one_line(rest)
    lines = [line for line in err.splitlines() if line.strip()]
    return _one_line(lines[-1]) if lines else ""


def _one_line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())
