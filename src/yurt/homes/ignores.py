"""The ignore rules of a Unison profile as an expression of find. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

import msgspec

RULE = re.compile(r"\s*(ignore|ignorenot)\s*=\s*(\S+)\s+(.*?)\s*$")
KINDS = ("Name", "Path", "BelowPath")


class Ignores(msgspec.Struct, frozen=True):
    """What a profile excludes. `unsupported` are rules that find cannot express; Unison itself obeys them."""

    expression: str
    """Words of a shell that are true for an ignored path; find runs in the root, with -mindepth 1."""
    unsupported: list[str]


def read(profile: str) -> Ignores:
    """Return the ignore rules of the text of a profile, and Unison's own for its temporary files."""
    tests: dict[str, list[str]] = {"ignore": [r"-name '.unison.*.unison.tmp'"], "ignorenot": []}
    unsupported = []
    for line in profile.splitlines():
        rule = RULE.match(line)
        if rule is None:
            continue
        if rule[2] in KINDS:
            tests[rule[1]] += _tests(rule[2], rule[3], below=rule[1] == "ignorenot")
        else:
            unsupported.append(line.strip())
    expression = _any(tests["ignore"])
    if tests["ignorenot"]:
        expression += f" ! {_any(tests['ignorenot'])}"
    return Ignores(expression, unsupported)


def _any(tests: list[str]) -> str:
    return rf"\( {' -o '.join(tests)} \)"


def _tests(kind: str, pattern: str, *, below: bool) -> Iterator[str]:
    """Yield tests of find for a pattern. `below`: BelowPath also matches what is in a folder.

    That matters only for exceptions: find does not enter an ignored folder.
    """
    for each in expanded(pattern):
        # In Unison, a * at the start of a name does not match a dot.
        visible = each.rpartition("/")[2][:1] in ("*", "?")
        hidden = " ! -name '.*'" if visible else ""
        if kind == "Name":
            yield rf"\( -name {quote(each)}{hidden} \)"
            continue
        path = "./" + each.strip("/")
        deeper = "*/" * (path.count("/") + 1) + "*"  # a * of find matches slashes, one of Unison does not
        yield rf"\( -path {quote(path)} ! -path {quote(deeper)}{hidden} \)"
        if kind == "BelowPath" and below:
            yield f"-path {quote(path + '/*')}"


def expanded(pattern: str) -> list[str]:
    """Return the patterns that a pattern with braces stands for: `*.{a,b}` is `*.a` and `*.b`."""
    start = _find(pattern, "{")
    if start < 0:
        return [pattern]
    depth, parts, begin = 0, [], start + 1
    at = start
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
        elif char in ",}" and depth == 1:
            parts.append(pattern[begin:at])
            begin = at + 1
            if char == "}":
                rest = pattern[at + 1 :]
                return [pattern[:start] + each for part in parts for each in expanded(part + rest)]
        elif char == "}":
            depth -= 1
        at += 1
    return [pattern]


def _find(pattern: str, char: str) -> int:
    """Return the first position of a character that no backslash precedes; -1 if there is none."""
    found = re.search(rf"(?<!\\){re.escape(char)}", pattern)
    return found.start() if found else -1
