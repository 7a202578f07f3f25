"""The return type of every verb, for a command line, a web page or an editor to show; and its end by Ctrl-C."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Data = TypeVar("Data")


class Result(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """The result of a verb. A verb with more data for people than the JSON envelope contains returns a subclass."""

    kind: str
    """The `kind` of the JSON envelope."""
    data: Data
    warnings: list[str] = []
    exit_code: int = 0


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; `note` says what happens to the run."""

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note
