"""The answers of sites for one minute, in a private file for each context.

A submission of this machine changes the queue, so it makes the answers of its context invalid. It also takes from them
what was expected for the run that it submits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.model.where import ExpectedStart, Starts

LIFE = 60.0
"""Seconds for which answers are valid."""


class _Kept(msgspec.Struct, frozen=True):
    """The answers of a site, by request."""

    address: list[str]
    """Of the site; another address is another site."""
    answers: dict[str, Starts]


_KEPT = msgspec.json.Decoder(_Kept)
"""Made here, since threads read files: msgspec crashes if two of them analyse a type at the same time."""


def file_of(context: str) -> Path:
    return paths.data_home() / "where" / f"{context}.json"


def find(context: str, address: list[str], request: str) -> Starts | None:
    """Return the answer of a site to a request; None if it is not known or too old."""
    return _load(context, address).get(request)


def keep(address: list[str], request: str, starts: Starts) -> None:
    """Keep an answer. Failures only cost time."""
    answers = {**_load(starts.context, address), request: starts}
    with suppress(OSError):
        paths.write_private(file_of(starts.context), msgspec.json.encode(_Kept(address, answers)))


def take(context: str, address: list[str], request: str, partition: str) -> tuple[Starts, ExpectedStart] | None:
    """Return what was expected of a request that is being submitted, and make all answers of its context invalid.

    `request`: the key of a request without its partitions, or all of it.
    """
    answers = _load(context, address)
    forget(context)
    for key, found in sorted(answers.items(), key=lambda each: -each[1].at):
        if key.startswith(f"{request}@"):
            rows = [row for row in found.rows if row.partition == partition and row.seconds is not None]
            if rows:
                return found, rows[0]
    return None


def forget(context: str) -> None:
    with suppress(OSError):
        file_of(context).unlink(missing_ok=True)


def _load(context: str, address: list[str]) -> Mapping[str, Starts]:
    try:
        kept = _KEPT.decode(file_of(context).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return {}
    now = time.time()
    valid = {request: each for request, each in kept.answers.items() if 0 <= now - each.at < LIFE}
    return valid if kept.address == address else {}
