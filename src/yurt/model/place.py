"""Names of places: `project:datasets/cifar`, `alpha:scratch:runs`, `alpha:/data/me`. Pure."""

from __future__ import annotations

import re

import msgspec

FORMS = "TIER:PATH, CONTEXT:TIER:PATH or CONTEXT:/PATH"

_TIER = r"[a-z][a-z0-9-]{0,30}"
_CONTEXT = r"[A-Za-z0-9][A-Za-z0-9._-]*"


class PlaceName(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or a file of a context, as a user names it."""

    context: str = ""
    """Empty: the current context."""
    tier: str = ""
    """The name of a storage tier; empty if the path is absolute, or relative to the home (`~/data`)."""
    path: str = ""
    """Below the tier; empty for the tier itself. Without a tier: a path that begins with / or ~."""
    inside: bool = False
    """Whether the name ends with a slash: what is copied there keeps its own name."""

    def __str__(self) -> str:
        end = "/" if self.inside and self.path and not self.path.endswith("/") else ""
        return ":".join(each for each in (self.context, self.tier) if each) + f":{self.path}{end}"


def parse(text: str) -> PlaceName | None:
    """Return the place that a text names; None if it is a path of this machine. `./a:b` is such a path."""
    first, colon, rest = text.partition(":")
    if not colon or "/" in first or not first:
        return None
    second, colon, path = rest.partition(":")
    if rest[:1] in ("/", "~"):
        return _place(first, "", rest) if re.fullmatch(_CONTEXT, first) else None
    if colon and re.fullmatch(_CONTEXT, first) and re.fullmatch(_TIER, second):
        return _place(first, second, path)
    return _place("", first, rest) if re.fullmatch(_TIER, first) else None


def _place(context: str, tier: str, path: str) -> PlaceName:
    inside = path.endswith("/") or not path
    while "//" in path:
        path = path.replace("//", "/")
    return PlaceName(context=context, tier=tier, path=path.rstrip("/") or path[:1], inside=inside)
