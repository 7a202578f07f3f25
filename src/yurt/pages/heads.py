"""Heads of HTTP/1 messages: parsed strictly, so that a front and the server behind it never disagree. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

HOP = {
    *("connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"),
    *("te", "trailer", "transfer-encoding", "upgrade", "expect"),
}
"""Headers for one connection only: a front does not forward them."""

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REQUEST = re.compile(rb"([A-Z]{1,20}) (/[\x21-\x7e]*) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


class BadHeadError(ValueError):
    """The head is not valid HTTP, or ambiguous; the text says why."""


class Headers:
    """The headers of a message, in order."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = list(pairs)

    def all(self, name: str) -> list[str]:
        """Return the values of all headers with this name, in lower case."""
        return [value for key, value in self.pairs if key.lower() == name]

    def one(self, name: str) -> str | None:
        """Return the value of a header. BadHeadError if there are several."""
        found = self.all(name)
        if len(found) > 1:
            raise BadHeadError(f"there are several headers {name}")
        return found[0] if found else None

    def words(self, name: str) -> set[str]:
        """Return the words of a header whose value is a list, in lower case."""
        return {word.strip().lower() for value in self.all(name) for word in value.split(",") if word.strip()}

    def forwarded(self) -> list[tuple[str, str]]:
        """Return the headers that a front forwards."""
        dropped = HOP | (self.words("connection") - {"host", "content-length", "cookie"})
        return [(key, value) for key, value in self.pairs if key.lower() not in dropped]


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request."""

    method: str
    target: str
    """The path and the query."""
    minor: int
    """0 for HTTP/1.0, 1 for HTTP/1.1."""
    headers: Headers
    length: int | None
    """The bytes of the body; None if it comes in chunks."""

    def without(self, name: str) -> RequestHead:
        """Return the head without a header, in lower case."""
        if not name:
            return self
        kept = Headers(pair for pair in self.headers.pairs if pair[0].lower() != name)
        return msgspec.structs.replace(self, headers=kept)

    @property
    def keeps(self) -> bool:
        """Whether the client wants to use the connection again."""
        words = self.headers.words("connection")
        return self.minor == 1 and "close" not in words

    @property
    def websocket(self) -> bool:
        """Whether the client wants to turn the connection into a websocket."""
        return (
            self.method == "GET"
            and self.minor == 1
            and self.length == 0
            and "upgrade" in self.headers.words("connection")
            and self.headers.words("upgrade") == {"websocket"}
        )


class ResponseHead(msgspec.Struct, frozen=True):
    """The head of a response."""

    status: int
    reason: str
    headers: Headers
    length: int | None
    """The bytes of the body; None if it comes in chunks, or until the end of the connection."""
    chunked: bool
    keeps: bool
    """Whether the server accepts another request on the connection."""


def request(head: bytes) -> RequestHead:
    """Parse the head of a request, with the empty line at its end. BadHeadError if it is invalid or ambiguous."""
    first, headers = _split(head)
    found = _REQUEST.fullmatch(first)
    if found is None:
        raise BadHeadError("the first line is not METHOD /PATH HTTP/1.1")
    minor = int(found[3])
    length, chunked = _framing(headers)
    if chunked and minor == 0:
        raise BadHeadError("HTTP/1.0 has no Transfer-Encoding")
    return RequestHead(
        found[1].decode(), found[2].decode(), minor, headers, None if chunked else length if length is not None else 0
    )


def response(head: bytes, method: str) -> ResponseHead:
    """Parse the head of a response to a request with this method. BadHeadError if it is invalid or ambiguous."""
    first, headers = _split(head)
    found = _STATUS.fullmatch(first)
    if found is None:
        raise BadHeadError("the first line is not HTTP/1.1 STATUS REASON")
    status = int(found[2])
    length, chunked = _framing(headers)
    if method == "HEAD" or status < 200 or status in (204, 304):
        length, chunked = 0, False
    keeps = found[1] == b"1" and "close" not in headers.words("connection")
    return ResponseHead(status, (found[3] or b"").decode("latin-1"), headers, length, chunked, keeps)


def written(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return a head as bytes."""
    lines = [first, *(f"{key}: {value}" for key, value in headers)]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


def _split(head: bytes) -> tuple[bytes, Headers]:
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    pairs = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadHeadError("a header is not NAME: VALUE")
        pairs.append((name.decode(), value.strip(b" \t").decode("latin-1")))
    return first, Headers(pairs)


def _framing(headers: Headers) -> tuple[int | None, bool]:
    """Return the length of the body, and whether it comes in chunks."""
    length, coding = headers.one("content-length"), headers.one("transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadHeadError("there are both Content-Length and Transfer-Encoding")
        if coding.lower() != "chunked":
            raise BadHeadError("the Transfer-Encoding is not chunked")
        return None, True
    if length is None:
        return None, False
    if not re.fullmatch(r"[0-9]{1,18}", length, re.ASCII):
        raise BadHeadError("the Content-Length is not a number")
    return int(length), False
