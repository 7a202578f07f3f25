"""Reads requirements files in pip's format. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, cast

import msgspec

Kind = Literal["requirement", "local", "include", "constraint", "index", "option"]

COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
VALUED: dict[str, str] = {
    "--requirement": "include",
    "-r": "include",
    "--constraint": "constraint",
    "-c": "constraint",
    "--editable": "requirement",
    "-e": "requirement",
    "--index-url": "index",
    "-i": "index",
    "--extra-index-url": "index",
    "--find-links": "index",
    "-f": "index",
    "--no-binary": "option",
    "--only-binary": "option",
    "--trusted-host": "option",
    "--use-feature": "option",
}
"""Options with a value, and the kind of their lines."""

LONGEST_SHOWN = 200
FLAGS = ("--no-index", "--prefer-binary", "--pre", "--require-hashes")
LONG = {"-i": "--index-url", "-f": "--find-links"}
OPTION = re.compile(r"(--[a-z-]+|-[a-z])(?:\s*=\s*|\s*)(.*)")
REMOTE = re.compile(r"(?:\w+\+)?(?:https?|ssh|git|hg|svn|bzr|ftp)(?:\+\w+)?:|git@", re.IGNORECASE)
ARCHIVE = re.compile(r"\.(?:whl|zip|tar\.gz|tgz|tar\.bz2)$", re.IGNORECASE)
ITSELF = re.compile(r"(?:\.|\./)(?:\[([^]]*)\])?")
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
VERSION = r"(?:(?:==|!=|<=|>=|<|>) *[0-9]+(?:\.[0-9]+)*|~= *[0-9]+(?:\.[0-9]+)+|[=!]= *[0-9]+(?:\.[0-9]+)*\.\*)"
PLAIN = re.compile(rf"{NAME}(?:\[{NAME}(?: *, *{NAME})*\])? *(?:{VERSION}(?: *, *{VERSION})*)?")
"""Matches only valid requirements, most of those that people write. The others take a parser to check."""
HASHES = re.compile(r"(?:\s+--hash(?:\s*=\s*|\s+)\w+:[0-9A-Fa-f]+)*")
"""What may follow a requirement. uv takes any other word after a hash for the next line, also an option."""


class Line(msgspec.Struct, frozen=True):
    """A logical line. `text` is the line without its comment; `value` is its requirement, path or address."""

    number: int
    kind: Kind
    text: str
    value: str
    option: str = ""


class Invalid(Exception):
    """A line is not in pip's format."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")


def read(text: str) -> list[Line]:
    """Return the lines of a requirements file. Invalid for the first line with an error."""
    return [_line(number, each) for number, each in _logical(text)]


def canonical(text: str) -> str:
    """Return the file without comments, blank lines and local packages. Invalid as in `read`."""
    return "".join(f"{each.text}\n" for each in read(text) if each.kind != "local")


def extras_of_itself(line: Line) -> list[str] | None:
    """Return the extras if a line installs the project itself, such as `-e .[dev]`; None for any other line."""
    found = ITSELF.fullmatch(line.value)
    if line.kind != "local" or found is None:
        return None
    return [each.strip() for each in (found[1] or "").split(",") if each.strip()]


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines without comments and blanks; as in pip, a backslash joins lines and a comment ends them."""
    parts: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        start = start if parts else number
        continues = line.endswith("\\") and not line.lstrip().startswith("#")
        parts.append(line[:-1] if continues else line)
        if continues:
            continue
        joined = COMMENT.sub("", " ".join(parts).strip()).strip()
        parts = []
        if joined:
            yield start, re.sub(r"\s+", " ", joined)


def _line(number: int, text: str) -> Line:
    if not text.startswith("-"):
        return _requirement(number, text, text, "")
    found = OPTION.fullmatch(text)
    name, value = (found[1], found[2].strip("'\"")) if found else (text, "")
    if name in FLAGS and not value:
        return Line(number, "option", text, "", name)
    if name not in VALUED:
        raise Invalid(number, f"unknown option {shown(name)}")
    if not value:
        raise Invalid(number, f"{name} needs a value")
    kind = VALUED[name]
    if re.search(r"\s" if kind == "index" else r"\s-", value):
        raise Invalid(number, f"{name} has more than one value; write one option in a line")
    if kind == "requirement":
        return _requirement(number, text, value, name)
    if kind == "index" and _is_place_here(value, LONG.get(name, name) == "--find-links"):
        kind = "local"
    return Line(number, cast(Kind, kind), text, value, LONG.get(name, name))


def _is_place_here(index: str, find_links: bool) -> bool:
    """Whether an index is a folder of this machine that is not used: uv would not take it relative to the file."""
    return not re.match(r"https?:" if find_links else r"\w+:|/", index, re.IGNORECASE)


def _requirement(number: int, text: str, value: str, option: str) -> Line:
    value, after = (each := re.split(r"(?=\s--)", value, maxsplit=1))[0].strip(), "".join(each[1:])
    if is_local(value):
        return Line(number, "local", text, value.partition(";")[0].strip(), option)
    if not HASHES.fullmatch(after):
        raise Invalid(number, f"only `--hash` may follow '{shown(value)}', not '{shown(after.strip())}'")
    remote = REMOTE.match(value)
    if " " in value if remote else not PLAIN.fullmatch(value):
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            Requirement(f"name @ {value}" if remote else value)
        except RecursionError:  # a marker in thousands of parentheses
            raise Invalid(number, f"'{shown(value)}' is nested too deeply") from None
        except InvalidRequirement as error:
            raise Invalid(
                number, f"'{shown(value)}' is not a requirement ({str(error).splitlines()[0].rstrip(':')})"
            ) from None
    return Line(number, "requirement", text, value, option)


def shown(text: str) -> str:
    """Return a text of an error, shortened."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def is_local(requirement: str) -> bool:
    """Return whether a requirement is a path on this machine and not a name or an address."""
    place = re.split(r"\s@\s*|(?<=[\w\]])@(?=\s|(?:\w+\+)?\w+://)", requirement, maxsplit=1)[-1].strip()
    if REMOTE.match(place):
        return False
    path = place.partition(";")[0].partition("[")[0].strip()
    return place.lower().startswith((".", "/", "~", "file:", "\\")) or "/" in path or bool(ARCHIVE.search(path))
