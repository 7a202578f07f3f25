"""Quotes words for sh as shlex does. Loads no regular expressions, which take longer than the rest of a short verb."""

from __future__ import annotations

from collections.abc import Iterable

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-"


def quote(text: str) -> str:
    """Return a text as one word of sh."""
    if text and not text.strip(_SAFE):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"


def join(words: Iterable[str]) -> str:
    """Return words as a command line of sh."""
    return " ".join(map(quote, words))
