"""Replaces what identifies a person or a site in a text, for a bug report. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

SHORTEST = 2
"""Shorter words are not replaced: they identify nobody."""

PATTERNS = (
    (re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|\Z)", re.DOTALL), "KEY"),
    (re.compile(r"(?<!\w)(?:~/)?'[^'\n]+'"), "QUOTED"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE), "URL"),
    (re.compile(r"[\w.+-]+@[\w.-]+\w"), "ADDRESS"),
    (
        re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:])(?:[0-9a-f]{0,4}:){3,}[0-9a-f]{0,4}"),
        "ADDRESS",
    ),
    (re.compile(r"(?<![\w.~/-])(?:~|\$\w+|\$\{\w+\})?(?:/[^\s/:;,'\"`<>()]+)+/?"), "PATH"),
    (
        re.compile(
            r"(?<![\w.-])(?!SHA256)[A-Za-z0-9+=_-]*(?:\d[A-Za-z0-9+=_-]*[A-Za-z]|[A-Za-z][A-Za-z0-9+=_-]*\d)"
            r"[A-Za-z0-9+=_-]*(?<=[A-Za-z0-9+=_-]{16})"
        ),
        "TOKEN",
    ),
    (re.compile(r"(?<![\w.-])(?:[a-z][\w-]*\.){2,}[a-z]{2,}(?![\w.-])", re.IGNORECASE), "HOST"),
)
"""What has the form of a key, URL, mail or IP address, path, token or host name."""


def names(kinds: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return a placeholder for each word, numbered within its kind: {"HOST": [a, b]} gives a: HOST1, b: HOST2.

    A kind with one word is not numbered.
    """
    found: dict[str, str] = {}
    for kind, words in kinds.items():
        distinct = [word for word in dict.fromkeys(words) if len(word) >= SHORTEST and word not in found]
        for number, word in enumerate(distinct, 1):
            found[word] = kind if len(distinct) == 1 and kind == "USER" else f"{kind}{number}"
    return found


def masked(text: str, words: Mapping[str, str], secrets: Iterable[str] = ()) -> str:
    """Return a text without secrets, and with each word and each thing that PATTERNS match replaced."""
    for secret in sorted({each for each in secrets if len(each) >= 4}, key=len, reverse=True):
        text = text.replace(secret, "SECRET")
    by_length = sorted(words, key=len, reverse=True)
    if by_length:
        any_word = "|".join(re.escape(word) for word in by_length)
        folded = {word.lower(): shown for word, shown in words.items()}
        pattern = re.compile(f"(?<![A-Za-z0-9])(?:{any_word})(?![A-Za-z0-9])", re.IGNORECASE)
        text = pattern.sub(lambda found: folded[found[0].lower()], text)
    for form, shown in PATTERNS:
        text = form.sub(shown, text)
    return text
