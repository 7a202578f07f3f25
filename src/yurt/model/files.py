"""What a context says of the files of runs, and what is asked of it. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from yurt.errors import YurtError
from yurt.model import ids, layout

Stream = Literal["out", "err"]
"""One of the two logs of a run."""

NOTHING = "0:0:0"
"""What an empty folder measures."""

UNMEASURED = "?"
"""What a folder measures that could not be counted in time."""


class LogPosition(msgspec.Struct):
    """How far the logs of a run were read; moves with what is handed out."""

    run: str
    folder: str
    out: int = 0
    err: int = 0
    over: bool = False
    """Whether the run is known to have ended."""
    done: bool = False
    """Whether it has ended, and everything was handed out."""
    gone: bool = False
    """Whether its folder is not there."""

    @property
    def begun(self) -> bool:
        return bool(self.out or self.err)


LogSink = Callable[[LogPosition, Stream, bytes], None]
"""Is handed what a run wrote."""


class Piece(msgspec.Struct, frozen=True):
    """Some bytes of a file, and how many it has."""

    size: int
    content: bytes


class Ended(msgspec.Struct, frozen=True):
    """A run that has ended, as far as is known here: its folder, and the verdict to be put there if there is none."""

    folder: str
    verdict: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one trip collects."""

    trip: int
    """Bytes after which it takes no further run."""
    seconds: int
    """How long it may take there."""
    log: int
    """Bytes of the end of each log."""
    metrics: int
    """metrics.jsonl comes whole up to so many bytes."""
    metrics_head: int
    """Of a larger one, so many of its beginning and the rest of its end."""


class Gathered(msgspec.Struct):
    """What one run folder says."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    """By name."""
    made: float = 0
    """When it was made."""

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode(errors="replace").strip()

    @property
    def starts(self) -> int:
        numbers = (name.removeprefix(layout.START) for name in self.files if name.startswith(layout.START))
        return max((int(number) for number in numbers if number.isdigit()), default=0)


class Contents(msgspec.Struct, frozen=True):
    """What a context has of a run: whether its job has written its ending, and what is in its folders."""

    ended: bool
    outputs: str
    checkpoints: str


class Survey(msgspec.Struct, frozen=True):
    """What a context has of a run: there, gone, going (half removed), foreign (not one of yurt's)."""

    what: str
    size: int = 0
    outputs: str = NOTHING
    checkpoints: str = NOTHING
    tasks: dict[int, tuple[str, str]] = {}
    """Of a sweep: outputs and checkpoints of each task that has some."""

    def results(self, run: str) -> Iterator[tuple[str, str, str]]:
        """Outputs and checkpoints, each with the run or the task they are of."""
        yield run, self.outputs, self.checkpoints
        for number, (outputs, checkpoints) in self.tasks.items():
            yield ids.task(run, number), outputs, checkpoints


class Held(msgspec.Struct, frozen=True):
    """A run folder that a context has."""

    folder: str
    ended: bool
    survey: Survey

    @property
    def id(self) -> str:
        return self.folder.rpartition("/")[2]


class Holdings(msgspec.Struct, frozen=True):
    """Everything of yurt's that a context has below one folder."""

    runs: list[Held]
    sizes: dict[str, int]
    """Bytes, by path."""


class Removed(msgspec.Struct, frozen=True):
    """What a removal came to."""

    gone: list[str]
    """Ids of the runs that are gone."""
    left: list[str] = []
    """Folders that stay: something in them is not yurt's, or came meanwhile."""
    failed: YurtError | None = None
    """Why not all of it went."""


class Pick(msgspec.Struct, frozen=True):
    """Which files of a folder are meant."""

    only: Sequence[str] = ()
    """Patterns as rsync has them; none is all files."""
    without: Sequence[str] = ()
    """Paths below the folder that are left out, with all below them."""


class Pull(msgspec.Struct, frozen=True):
    """A run whose files shall come: its folder there, and the name of the folder they go to here."""

    folder: str
    name: str


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """What a transfer came to."""

    files: int
    """How many had to be sent."""
    size: int
    """Their bytes."""
    matched: int
    """How many there are of those that were asked for."""
    vanished: bool = False
    """Whether some went away or changed while they were read."""
    below: dict[str, Brought] = {}
    """The same of each folder, where several came in one go."""


Progress = Callable[[int, int], None]
"""Told of bytes so far, and of percents; 0 percents where nobody knows."""
