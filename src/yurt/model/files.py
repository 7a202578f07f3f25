"""Requests for files of runs on a context, and their results. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from yurt.errors import YurtError
from yurt.model import ids, layout

Stream = Literal["out", "err"]
"""One of the two logs of a run."""

NOTHING = "0:0:0"
"""The measure of an empty folder."""

UNMEASURED = "?"
"""The measure of a folder that could not be counted in time."""


class LogPosition(msgspec.Struct):
    """How far the logs of a run were read; updated with each chunk."""

    run: str
    folder: str
    out: int = 0
    err: int = 0
    over: bool = False
    """Whether the run has finished."""
    done: bool = False
    """Whether the run has finished and its logs were read completely."""
    gone: bool = False
    """Whether its run folder does not exist."""

    @property
    def begun(self) -> bool:
        return bool(self.out or self.err)


LogSink = Callable[[LogPosition, Stream, bytes], None]
"""Receives the output of a run."""


class Piece(msgspec.Struct, frozen=True):
    """Some bytes of a file, and its size."""

    size: int
    content: bytes


class Ended(msgspec.Struct, frozen=True):
    """A finished run according to this machine: its folder, and the verdict to store there if there is none."""

    folder: str
    verdict: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one request collects."""

    trip: int
    """Bytes after which it adds no further run."""
    seconds: int
    """Time limit of the request on the site."""
    log: int
    """Bytes from the end of each log."""
    metrics: int
    """metrics.jsonl is complete up to this size in bytes."""
    metrics_head: int
    """Bytes from the beginning of a larger metrics.jsonl; the rest is taken from its end."""


class Gathered(msgspec.Struct):
    """The small files of one run folder."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    """Content by name."""
    made: float = 0
    """When the folder was created."""

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode(errors="replace").strip()

    @property
    def starts(self) -> int:
        numbers = (name.removeprefix(layout.START) for name in self.files if name.startswith(layout.START))
        return max((int(number) for number in numbers if number.isdigit()), default=0)


class Contents(msgspec.Struct, frozen=True):
    """The content of a run on a context: whether its job has written exit.json, and the measures of its folders."""

    ended: bool
    outputs: str
    checkpoints: str


class Survey(msgspec.Struct, frozen=True):
    """The state of a run folder: there, gone, going (partly removed) or foreign (not created by yurt)."""

    what: str
    size: int = 0
    outputs: str = NOTHING
    checkpoints: str = NOTHING
    tasks: dict[int, tuple[str, str]] = {}
    """For a sweep: outputs and checkpoints of each task that has any."""

    def results(self, run: str) -> Iterator[tuple[str, str, str]]:
        """Yield the id, outputs and checkpoints of the run and of each task."""
        yield run, self.outputs, self.checkpoints
        for number, (outputs, checkpoints) in self.tasks.items():
            yield ids.task(run, number), outputs, checkpoints


class Held(msgspec.Struct, frozen=True):
    """A run folder on a context."""

    folder: str
    ended: bool
    survey: Survey

    @property
    def id(self) -> str:
        return self.folder.rpartition("/")[2]


class Holdings(msgspec.Struct, frozen=True):
    """Everything that yurt has stored below one folder of a context."""

    runs: list[Held]
    sizes: dict[str, int]
    """Bytes, by path."""


class Removed(msgspec.Struct, frozen=True):
    """The result of a removal."""

    gone: list[str]
    """Ids of the removed runs."""
    left: list[str] = []
    """Folders that were kept: they contain files that yurt did not create, or that appeared during the removal."""
    failed: YurtError | None = None
    """Why the removal is incomplete."""


class Pick(msgspec.Struct, frozen=True):
    """A selection of the files in a folder."""

    only: Sequence[str] = ()
    """rsync patterns; empty selects all files."""
    without: Sequence[str] = ()
    """Paths below the folder to exclude, with their content."""


class Pull(msgspec.Struct, frozen=True):
    """A run whose files are to be fetched: its folder on the site, and the name of the local folder."""

    folder: str
    name: str


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a transfer."""

    files: int
    """Number of files sent."""
    size: int
    """Bytes sent."""
    matched: int
    """Number of selected files on the site."""
    vanished: bool = False
    """Whether files disappeared or changed during the transfer."""
    below: dict[str, Brought] = {}
    """The result of each folder, if several were fetched in one transfer."""


Progress = Callable[[int, int], None]
"""Receives the bytes so far and the percentage; 0 percent if unknown."""
