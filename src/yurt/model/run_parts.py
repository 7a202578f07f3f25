"""What is left of a run on its site. Pure values."""

from __future__ import annotations

import msgspec


class Amount(msgspec.Struct, frozen=True):
    """Size of a part of a run folder; None if it could not be measured in time."""

    files: int | None
    bytes: int | None


class ResultFile(msgspec.Struct, frozen=True):
    """A result of a run."""

    path: str
    """Relative to the run folder; bytes that are not text are written as \\xNN."""
    bytes: int
    """Its size."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What is still on the site of a run."""

    there: bool
    """Whether the run folder exists."""
    parts: dict[str, Amount] = {}
    files: list[ResultFile] = []
    """Files in `outputs`, and those that the run wrote into its working directory `work`: the first 500, by name."""
