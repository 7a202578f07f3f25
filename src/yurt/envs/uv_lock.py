"""Reads what a uv.lock says about the sources of packages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from yurt.config.parse_cache import cached
from yurt.envs import pyproject
from yurt.model.digest import sha256_name


class UvLock(msgspec.Struct, frozen=True):
    """The parts of a uv.lock that yurt uses itself; uv evaluates the rest."""

    python: str
    names: list[str]
    local: list[str]
    """The paths of packages on this machine, which are not installed."""
    addresses: list[str]
    """Repositories and archives, also those on this machine: they are downloaded, or uploaded."""


@lru_cache(maxsize=4)
def read(text: str) -> UvLock:
    """Return the parts of a uv.lock. ValueError with the reason if it is not in TOML format.

    They are cached by the digest of the text: a lock of hundreds of packages takes longer to parse than all the rest
    of a submission. One of several files has it, so that the locks of a few projects are kept.
    """
    digest = sha256_name(text.encode(errors="surrogateescape"))
    return cached(f"uv-lock-{digest[0]}", digest, UvLock, lambda: _parsed(text))


def _parsed(text: str) -> UvLock:
    tables = pyproject.parsed(text)
    python = tables.get("requires-python")
    sources = list(_sources(tables))
    return UvLock(
        python=python if isinstance(python, str) else "",
        names=list(dict.fromkeys(each["name"] for each in _tables(tables) if isinstance(each.get("name"), str))),
        local=sorted(set(_values(sources, "editable", "directory", "path"))),
        addresses=[
            *(each.partition("?")[0] for each in _values(sources, "git")),  # then `?rev=`, and the commit
            *_values(sources, "url"),
        ],
    )


def _sources(tables: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tables `source`, wherever they are: uv knows older names of the list of packages."""
    for each in _tables(tables):
        if isinstance(source := each.get("source"), dict):
            yield source


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            yield each
            todo += reversed(each.values())
        elif isinstance(each, list):
            todo += reversed(each)


def _values(sources: list[dict[str, Any]], *names: str) -> list[str]:
    found = (source[name] for source in sources for name in names if isinstance(source.get(name), str))
    return list(dict.fromkeys(found))
