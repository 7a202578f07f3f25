"""A short name for a longer text. hashlib would load all of OpenSSL, which costs more than the rest of a verb."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover: a Python that is not CPython
    from hashlib import blake2b


def digest(text: str, size: int = 8) -> bytes:
    """`size` bytes that tell a text from others; not for secrets."""
    return checksum(text.encode(errors="surrogateescape"), size)


def checksum(content: bytes, size: int = 20) -> bytes:
    """`size` bytes by which damage to a content is noticed."""
    made: bytes = blake2b(content, digest_size=size).digest()
    return made
