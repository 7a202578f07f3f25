"""The patterns of .yurtignore files: which paths of a workspace are left out of its backups."""

import errno
import os
import re
import stat
from typing import List, NamedTuple, Optional, Sequence, Tuple

NAME = b".yurtignore"
BOM = b"\xef\xbb\xbf"


class Rule(NamedTuple):
    """One pattern, matched against a path relative to the folder of its file."""

    match: "re.Pattern[bytes]"
    folders_only: bool
    keeps: bool


class Rules:
    """The rules that apply in one folder: those of its own .yurtignore, then those of the folders above."""

    def __init__(self, own: Sequence[Rule], start: int = 0, above: "Optional[Rules]" = None) -> None:
        self.own = tuple(reversed(own))
        self.start = start
        self.above = above

    def ignores(self, path: bytes, is_folder: bool) -> bool:
        """Return whether a path is left out. The last matching pattern of the deepest file decides."""
        rules: Optional[Rules] = self
        while rules is not None:
            below = path[rules.start :]
            for rule in rules.own:
                if (is_folder or not rule.folders_only) and rule.match.match(below):
                    return not rule.keeps
            rules = rules.above
        return False

    def within(self, folder: bytes, prefix: bytes) -> "Rules":
        """Return the rules for a folder, which may have a .yurtignore. Raises OSError if that cannot be read."""
        try:
            own = parse(_read(os.path.join(folder, NAME)).split(b"\n"))
        except FileNotFoundError:
            return self
        return Rules(own, len(prefix), self)


def _read(path: bytes) -> bytes:
    """Return the content of a file. OSError if it is anything else, such as a FIFO, which nobody may ever write to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        content = stream.read()
    return content[len(BOM) :] if content.startswith(BOM) else content


def parse(lines: Sequence[bytes]) -> List[Rule]:
    """Return the rules of lines as in .gitignore: `#` comments, `!` keeps, a trailing `/` matches only folders."""
    rules = []
    for each in lines:
        line = each.rstrip(b"\r")
        while line.endswith(b" ") and not line.endswith(b"\\ "):
            line = line[:-1]
        keeps = line.startswith(b"!")
        line = line[1:] if keeps else line
        folders_only = line.endswith(b"/")
        pattern = line.rstrip(b"/") if folders_only else line
        if pattern and not line.startswith(b"#"):
            rules.append(Rule(re.compile(_regex(pattern), re.DOTALL), folders_only, keeps))
    return rules


def _regex(pattern: bytes) -> bytes:
    anchored = b"/" in pattern
    rest = pattern.lstrip(b"/")
    found = b"" if anchored else b"(?:.*/)?"
    while rest:
        piece, rest = _piece(rest, not found or found.endswith((b"/", b")?")))
        found += piece
    return found + rb"\Z"


def _piece(rest: bytes, at_start: bool) -> Tuple[bytes, bytes]:
    """Return the regular expression of the first part of a pattern, and the rest of the pattern."""
    if at_start and rest.startswith(b"**/"):
        return b"(?:.*/)?", rest[3:]
    if at_start and rest == b"**":
        return b".+", b""
    if rest.startswith(b"*"):
        return b"[^/]*", rest.lstrip(b"*")
    if rest.startswith(b"?"):
        return b"[^/]", rest[1:]
    if rest.startswith(b"["):
        end = rest.find(b"]", 2 if rest[1:2] not in (b"!", b"^") else 3)
        if end > 0:
            body = rest[1:end].replace(b"\\", b"\\\\").replace(b"[", b"\\[")
            body = b"^" + body[1:] if body[:1] == b"!" else body
            return b"(?!/)[" + body + b"]", rest[end + 1 :]
    if rest.startswith(b"\\") and len(rest) > 1:
        return re.escape(rest[1:2]), rest[2:]
    return re.escape(rest[:1]), rest[1:]
