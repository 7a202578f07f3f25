"""Makes the output of runs safe for a terminal. Pure.

Text, colours, and the cursor moves of progress bars pass through. All other control sequences are dropped with their
content: they could change the title, the clipboard, the keyboard or the modes of the terminal, or make it type an
answer. The terminal is assumed to use UTF-8.
"""

from __future__ import annotations

import codecs
import re

_ALLOWED = r"\[(?:[0-9;:]{0,64}m|[0-9]{0,4}[A-GK]|0?J)"
"""After ESC: colours and other attributes; cursor moves up, down and in the line; erase the line or what follows."""

_TEXT = r"[^\x00-\x1f\x7f-\x9f]*+"
"""The content of a title and the like. Any control character ends it: without its end, it hides at most a line."""

_CSI = r"[0-?]{0,64}+[ -/]{0,8}+"
"""The parameters of a control sequence."""

# Both begin with a set of characters, so that re skips ordinary text at full speed.
_DROPPED = re.compile(
    rf"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f](?!(?<=\x1b){_ALLOWED})"
    rf"(?:(?:(?<=\x1b)[\]PX^_k]|(?<=[\x90\x98\x9d-\x9f])){_TEXT}(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC, screen
    rf"|(?:(?<=\x1b)\[|(?<=\x9b)){_CSI}[@-~]?"
    r"|(?<=\x1b)[ -/]{0,8}+[0-~]?)?"
)
_UNFINISHED = re.compile(
    rf"[\x1b\x90\x98\x9b\x9d-\x9f](?:(?P<start>(?<=\x1b)[\]PX^_k]|(?<=[\x90\x98\x9d-\x9f])){_TEXT}(?P<end>\x1b?)"
    rf"|(?:(?<=\x1b)\[|(?<=\x9b)){_CSI}|(?<=\x1b)[ -/]{{0,8}}+)\Z"
)
"""A sequence that may continue after the end of the text."""

_STYLE = re.compile(rf"\x1b{_ALLOWED}")

RESET = b"\x1b[0m"
"""Turns off colours and other attributes."""


class TerminalFilter:
    """Filters a stream of bytes; with `plain`, drops colours and cursor moves too.

    Holds back only an unfinished sequence or character at the end of what it received.
    """

    RESET = RESET

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._styled = False

    def feed(self, part: bytes) -> bytes:
        """Return what the terminal may receive of this part of the stream."""
        text = self._held + self._decoder.decode(part)
        self._held = ""
        if (rest := _UNFINISHED.search(text)) is not None:
            # Content is dropped in any case; without it, an endless sequence needs no memory.
            self._held = rest[0] if rest["start"] is None else rest[0][0] + rest["start"] + rest["end"]
            text = text[: rest.start()]
        return self._passed(text)

    def end(self) -> bytes:
        """Return the rest of the stream: a mark for an incomplete character, or nothing."""
        rest, self._held = self._held + self._decoder.decode(b"", final=True), ""
        return self._passed(rest)

    def reset(self) -> bytes:
        """Return the sequence that turns off what the stream has turned on; empty if it used no sequences."""
        styled, self._styled = self._styled, False
        return RESET if styled else b""

    def _passed(self, text: str) -> bytes:
        passed = _DROPPED.sub("", text)
        if self._plain:
            passed = _STYLE.sub("", passed)
        self._styled = self._styled or "\x1b[" in passed
        return passed.encode()


def safe(content: bytes, *, plain: bool = False) -> bytes:
    """Return a complete output as a terminal may receive it."""
    stream = TerminalFilter(plain=plain)
    return stream.feed(content) + stream.end() + stream.reset()
