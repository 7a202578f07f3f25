"""What every verb returns, for a command line, a web page or an editor to show."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Data = TypeVar("Data")


class Result(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """What a verb did or found. A verb that has more for people than its envelope holds returns a subclass."""

    kind: str
    """What the data is, as the JSON envelope names it."""
    data: Data
    warnings: list[str] = []
    exit_code: int = 0
