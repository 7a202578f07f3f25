"""Short digests of texts. hashlib would load all of OpenSSL, which takes longer than the rest of a command."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # pragma: no cover: a Python that is not CPython
    from hashlib import blake2b


try:
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:  # pragma: no cover: a Python that is not CPython
        from hashlib import sha256

try:
    from _sha1 import sha1 as _sha1  # type: ignore[import-not-found]
except ImportError:  # pragma: no cover: a Python that is not CPython
    from hashlib import sha1 as _sha1

sha1 = _sha1
"""What git names objects by."""


def digest(text: str, size: int = 8) -> bytes:
    """Return `size` bytes that identify a text; not for secrets."""
    return checksum(text.encode(errors="surrogateescape"), size)


def checksum(content: bytes, size: int = 20) -> bytes:
    """Return a checksum of `size` bytes that detects damaged content."""
    made: bytes = blake2b(content, digest_size=size).digest()
    return made


def sha256_name(content: bytes) -> str:
    """Return the SHA-256 of some content as sha256sum prints it."""
    made: str = sha256(content).hexdigest()
    return made
