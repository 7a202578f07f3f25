"""Addresses that users give. Pure."""

from __future__ import annotations


def without_password(uri: str) -> str:
    """Return a URI without the name and the password in it."""
    scheme, mark, rest = uri.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{mark}{place.rpartition('@')[2]}{slash}{path}" if mark else uri
