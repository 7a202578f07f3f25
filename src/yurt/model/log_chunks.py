"""Parses what tail.sh sends of the logs of one run: chunks with a header, see there. Pure."""

from __future__ import annotations

from yurt.model.files import LogPosition, LogSink, Stream
from yurt.model.site_words import shown, whole

LONGEST_HEADER = 10_000
"""Bytes of a line before the bytes of a file; it may name a path."""


class LogChunks:
    """The output of tail.sh as it comes. Passes the bytes of the logs on and updates how far they were read."""

    def __init__(self, log: LogPosition, sink: LogSink) -> None:
        self._log, self._sink = log, sink
        self._held, self._name, self._left = b"", "", 0
        self.more = False
        """Whether the site has more than it was to send at once."""

    def feed(self, part: bytes) -> None:
        held = self._held + part
        while held:
            if self._left:
                part, held = held[: self._left], held[self._left :]
                self._left -= len(part)
                hand_out(self._log, self._name, part, self._sink)
                continue
            line, newline, rest = held.partition(b"\n")
            if not newline:
                check_header(held)
                break
            held = rest
            self._name, _, count = line.decode().partition(" ")
            if self._name == "skip-out":
                self._log.out = whole(count)
            elif self._name == "skip-err":
                self._log.err = whole(count)
            elif self._name in ("cut-out", "cut-err"):
                self._log.cut = whole(count)
            elif self._name == "more":
                self.more = True
            elif self._name in ("out", "err"):
                self._left = whole(count)
            elif self._name != "-":  # a sign of life
                raise ValueError(f"{shown(self._name)} is not a log")
        self._held = held


def check_header(begun: bytes) -> None:
    """ValueError if a line before the bytes of a file, of which the end is missing, is longer than any such line."""
    if len(begun) > LONGEST_HEADER:
        raise ValueError("it has an endless line")


def read(answer: bytes, log: LogPosition, sink: LogSink) -> bool:
    """Pass a whole answer on; return False if the site has more."""
    chunks = LogChunks(log, sink)
    chunks.feed(answer)
    return not chunks.more


def hand_out(log: LogPosition, name: str, part: bytes, sink: LogSink) -> None:
    """Pass a part of a log on and note how far it was read."""
    which: Stream = "out" if name == "out" else "err"
    sink(log, which, part)
    setattr(log, which, getattr(log, which) + len(part))
