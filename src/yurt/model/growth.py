"""Files of runs that grow: what to look for on a site, and what has come. Pure values."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

Kind = Literal["metrics", "events", "mlflow", "usage"]
"""Kinds of files: metrics.jsonl of yurt.log, event files of TensorBoard, the folder mlruns of MLflow, and samples of
what a run uses."""

EVENTS = "tfevents"
"""A part of the name of every event file."""

MLRUNS = "mlruns"
"""The folder of MLflow in the outputs of a run."""

OVERLAP = 256
"""Bytes before the end of a copy that are sent again: if they differ, the file was replaced."""


class Known(msgspec.Struct, frozen=True):
    """A file of which this machine has a copy."""

    path: str
    """Relative to the folder of the run or sweep."""
    size: int
    """Bytes of the copy."""
    seen: str = ""
    """What the site said of the file when the copy was made; another text means that the file has changed."""


class Growing(msgspec.Struct, frozen=True, kw_only=True):
    """A run or a sweep whose files are wanted."""

    folder: str
    sweep: bool = False
    known: list[Known] = []
    deep: bool = True
    """Whether to search all its folders, or only those in which files were found before."""
    place: str = ""
    """The folder in which its command was started, if that is not in the run folder."""
    since: float = 0
    """For `place`: event files that were begun earlier, or after `until`, are of other runs."""
    until: float = 0


class Reader(Protocol):
    """Receives new bytes of files, one file after the other."""

    def begin(self, at: int, path: str, seen: str, start: int) -> None:
        """A file of a run follows: the number of the run in the request, and where in the file the bytes begin.

        They begin before the end of the copy, or at 0 if the file is new or shorter than its copy.
        """

    def more(self, part: bytes) -> None:
        """Receive the next bytes."""

    def end(self) -> None:
        """The bytes of the file are complete, as far as the site has them now."""
