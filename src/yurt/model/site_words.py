"""Words of a site that become arguments, file names or lines of a configuration on this machine, each in its type.

A type has one constructor, which checks the text, so a value of the type is always safe to use. Read a word into its
type where it is read. The index and the caches keep words as plain text: read them again before they are used.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from typing import ClassVar, TypeVar

import msgspec

from yurt.errors import RefusedError

_Word = TypeVar("_Word", bound="SiteWord")
_Answer = TypeVar("_Answer")
_Record = TypeVar("_Record", bound=msgspec.Struct)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


LARGEST, LATEST = 1 << 60, 250_000_000_000.0
"""Larger numbers fit neither into JSON nor into the index, and no calendar has later times (the year 9892)."""

MALFORMED = (ValueError, RecursionError)
"""What msgspec raises about JSON of a site: also that a text is not UTF-8, or nested too deeply."""


class Reading:
    """Turns what a parser of an answer raises into an error of the site: no answer of a site is a bug of yurt."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (*MALFORMED, LookupError, ArithmeticError)):
            raise RefusedError(
                f"{self._name}: the answer of the site cannot be read: {shown(str(error))}",
                code="site-invalid",
                hint="look for what prints it: the dotfiles of your login, or a program that replaces one of the site",
            ) from error


def one_each(answers: list[_Answer], asked: Sized) -> list[_Answer]:
    """Return the answers of a site. ValueError, for a `Reading`: there is not one for each thing that was asked."""
    if len(answers) != len(asked):
        raise ValueError(f"{len(answers)} answers instead of {len(asked)}")
    return answers


class SiteWord(str):
    """A word of a site that was checked. RefusedError if it is not what it should be."""

    __slots__ = ()
    what: ClassVar[str]

    def __new__(cls: type[_Word], text: str, site: str = "") -> _Word:
        if not cls.fits(text):
            raise RefusedError(
                f"{site}{': ' if site else ''}{shown(text)} is not {cls.what}",
                code="site-invalid",
                hint="the site printed it; ask its administrators, or log in with ssh and look for what prints it",
            )
        return super().__new__(cls, text)

    @classmethod
    def fits(cls, text: str) -> bool:
        raise NotImplementedError

    @classmethod
    def read(cls: type[_Word], text: str) -> _Word | None:
        """Return the word; None if it is not one of these."""
        return cls(text) if cls.fits(text) else None


def shown(text: str) -> str:
    """Return a word of a site for a message, short and on one line."""
    return ascii(text if len(text) <= 80 else f"{text[:77]}...")


LONGEST = 4000
"""Characters that are kept of a word of a site. The list of a thousand scattered nodes is shorter."""


def brief(text: str) -> str:
    """Return a word of a site that is stored and shown as it is, without the end of a huge one."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def whole(text: str) -> int:
    """Return a number of bytes, lines or files. ValueError if it is negative or absurd."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(f"{shown(text)} is not a number")
    return int(text)


def count(text: str) -> int:
    """Return a number of bytes, lines or files; 0 if it is none."""
    try:
        return whole(text)
    except ValueError:
        return 0


def moment(text: str) -> float:
    """Return a time, or a duration, in seconds: at most LATEST. ValueError if it is no number."""
    found = float(text)
    if math.isnan(found):
        raise ValueError(f"{shown(text)} is not a time")
    return max(-LATEST, min(LATEST, found))


def plausible(record: _Record) -> _Record | None:
    """Return a record of a site; None if a number in it is beyond all times and sizes, and would break what uses it."""
    for value in msgspec.structs.astuple(record):
        most = LATEST if isinstance(value, float) else LARGEST
        if isinstance(value, (int, float)) and not -most < value < most:
            return None
        if isinstance(value, msgspec.Struct) and plausible(value) is None:
            return None
    return record


def made_of(text: str, characters: str, longest: int) -> bool:
    """Whether the text has only these characters, and begins with one that no program takes for an option."""
    return 0 < len(text) <= longest and text[0] not in "-." and not text.strip(characters)


def printable(text: str, longest: int) -> bool:
    """Whether the text is not empty, has no control characters, and can be an argument of a program."""
    try:
        size = len(text.encode(errors="surrogateescape"))  # names of files may be any bytes
    except UnicodeEncodeError:
        return False
    return 0 < size <= longest and all(each >= " " and each != "\x7f" for each in text)


def _is_name(text: str) -> bool:
    return "/" not in text and text not in (".", "..") and printable(text, 255)


class NodeName(SiteWord):
    """The name of one node: an argument of ssh, and a name in a file of known hosts."""

    __slots__ = ()
    what = "the name of a node"

    @classmethod
    def fits(cls, text: str) -> bool:
        return made_of(text, LETTERS + ".-_", 253)


class UserName(SiteWord):
    """The name of a user, also DOMAIN\\user and user@domain: an argument of ssh, and a value in its configuration."""

    __slots__ = ()
    what = "the name of a user"

    @classmethod
    def fits(cls, text: str) -> bool:
        return made_of(text.removesuffix("$"), LETTERS + ".-_+@\\", 255) and not text.endswith("\\")


class TreeId(SiteWord):
    """The id of a tree in git: an argument of git."""

    __slots__ = ()
    what = "the id of a git tree"

    @classmethod
    def fits(cls, text: str) -> bool:
        return len(text) in (40, 64) and not text.strip("0123456789abcdef")


class FileName(SiteWord):
    """The name of a file or folder: one part of a path of this machine."""

    __slots__ = ()
    what = "the name of a file"

    @classmethod
    def fits(cls, text: str) -> bool:
        return text[:1] != "-" and _is_name(text)


class PathBelow(SiteWord):
    """The path of a file below a folder, such as a run folder."""

    __slots__ = ()
    what = "a path below a folder"

    @classmethod
    def fits(cls, text: str) -> bool:
        return len(text) <= 4096 and text.isprintable() and all(_is_name(each) for each in text.split("/"))


class SitePath(SiteWord):
    """An absolute path on a site: an argument of a program that takes another word for an option."""

    __slots__ = ()
    what = "an absolute path"

    @classmethod
    def fits(cls, text: str) -> bool:
        return text.startswith("/") and printable(text, 4096)
