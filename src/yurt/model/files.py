"""Requests for files of runs on a context, and their results. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from yurt.errors import YurtError
from yurt.model import ids, layout
from yurt.model.site_words import shown, whole

Stream = Literal["out", "err"]
"""One of the two logs of a run."""

NOTHING = "0:0:0"
"""The measure of an empty folder."""

UNMEASURED = "?"
"""The measure of a folder that could not be counted in time."""


class Measures(msgspec.Struct, frozen=True):
    """The measures of the folders of a run that may contain results; as printed by `measure_run`."""

    outputs: str = NOTHING
    checkpoints: str = NOTHING
    work: str = NOTHING
    """What the run wrote into its working directory."""

    @property
    def unmeasured(self) -> bool:
        return UNMEASURED in (self.outputs, self.checkpoints, self.work)

    def by_part(self) -> dict[str, str]:
        return dict(zip(RESULT_PARTS, (self.outputs, self.checkpoints, self.work), strict=True))


RESULT_PARTS = (layout.OUTPUTS, layout.CHECKPOINTS, layout.WORK)
"""The folders of a run that may contain results."""


def checked(measure: str) -> str:
    """Return a measure that a site printed. ValueError if it is none."""
    if measure not in ("", UNMEASURED):
        for number in measure.split(":")[:2]:
            whole(number)
        if measure.count(":") < 1:
            raise ValueError(f"{shown(measure)} is not a measure")
    return measure


def count(measure: str) -> int:
    """Return the number of files of a measure; 1 if it is unknown."""
    return int(measure.partition(":")[0]) if measure != UNMEASURED else 1


def total(measures: Measures) -> int | None:
    """Return the bytes of what is fetched of a run without --all; None if they are unknown."""
    if UNMEASURED in (measures.outputs, measures.work):
        return None
    return size(measures.outputs) + size(measures.work)


def size(measure: str) -> int:
    """Return the bytes of a measure; 0 if they are unknown."""
    return int(measure.split(":")[1]) if measure != UNMEASURED else 0


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
    only: Stream | None = None
    """The one log that is wanted of a single run: the other may be long."""
    cut: int = 0
    """With a limit of lines: the bytes at the end of a log that are shown, if its last lines are longer."""

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
    files: int
    """How many result files it lists in each part of a run folder that it measures."""


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
        return max((whole(number) for number in numbers if number.isdigit()), default=0)


class Contents(msgspec.Struct, frozen=True):
    """The content of a run on a context: whether its job has written exit.json, and the measures of its folders."""

    ended: bool
    measures: Measures


class Survey(msgspec.Struct, frozen=True):
    """The state of a run folder: there, gone, going (partly removed) or foreign (not created by yurt)."""

    what: str
    size: int = 0
    measures: Measures = Measures()
    tasks: dict[int, Measures] = {}
    """For a sweep: the measures of each task that has results."""

    def results(self, run: str) -> Iterator[tuple[str, Measures]]:
        """Yield the id and the measures of the run and of each task."""
        yield run, self.measures
        for number, measures in self.tasks.items():
            yield ids.task(run, number), measures


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
    files_only: bool = False
    """Whether to leave out empty folders."""
    backup: bool = False
    """Whether the target has files of the user: one that is replaced is kept as NAME~, and no .git is written, because
    git runs commands that it finds there."""

    no_git: bool = False
    """Whether to write no .git, also without `backup`."""
    check_room: bool = False
    """Whether to compare their size with the free space of this machine first; rsync lists the files twice then."""

    @property
    def selects(self) -> bool:
        """Whether not all files in the folder are wanted."""
        return bool(self.only or self.without or self.backup or self.no_git)


class Pull(msgspec.Struct, frozen=True):
    """A run whose files are to be fetched: its folder on the site, and the name of the local folder."""

    folder: str
    name: str
    outputs: bool = True
    """Whether it has outputs."""
    work: bool = False
    """Whether it wrote into its working directory."""
    size: int | None = None
    """Bytes of its results; None if unknown."""


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a transfer."""

    files: int
    """Number of files sent."""
    size: int
    """Bytes sent."""
    matched: int
    """Number of selected files on the site."""
    vanished: bool = False
    """Whether files disappeared or changed during the transfer, or were left out."""
    replaced: int = 0
    """Number of files on this machine that were replaced."""
    hidden: int = 0
    """Number of files in the working directory that have the same name as a file in the outputs; not fetched."""
    below: dict[str, Brought] = {}
    """The result of each folder, if several were fetched in one transfer."""


class KeepItem(msgspec.Struct, frozen=True, kw_only=True):
    """A run folder, or another file or folder of a site, to copy to a lasting tier of the same site."""

    source: str
    target: str
    """In the folder yurt-kept of the tier."""
    run: bool = True
    """Whether the source is a run folder, of which only results and records are copied."""


class KeepSource(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to copy: there, gone, or going (a run that has not finished)."""

    what: str
    measures: Measures = Measures()
    """Of a file or a folder that is not a run: its outputs are all of it."""


class KeptItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a copy to a lasting tier."""

    copied: bool = False
    """Whether something was copied; if not, and nothing failed, the copy was complete already."""
    failed: str = ""
    """Why there is no new copy."""
    measures: Measures = Measures()
    """What the run folder contained; empty texts for parts that were not copied."""


Progress = Callable[[int, int], None]
"""Receives the bytes so far and in total; 0 in total if that is unknown."""


def unreported(_size: int, _total: int) -> None:
    """Ignore the progress of a transfer, which then does not have to find it out."""


def read_contents(text: str, folders: Sequence[str]) -> tuple[dict[str, Contents], bool]:
    """Return what contents.sh prints: the contents of run folders, and whether the site has rsync."""
    method, *lines_of_runs = text.splitlines()
    states, measures = lines_of_runs[: len(folders)], lines_of_runs[len(folders) :]
    sizes = {folder: checked(measure) for measure, _, folder in (line.partition(" ") for line in measures)}
    if "" in sizes.values():
        raise ValueError("a folder has no measure")
    found = {
        folder: Contents(state == "ended", Measures(*(sizes.get(f"{folder}/{part}", NOTHING) for part in RESULT_PARTS)))
        for folder, state in zip(folders, states, strict=True)
        if state != "gone"
    }
    return found, method == "rsync"


def marked_contents(text: str, mark: str, folder: str) -> Contents | None:
    """Return the contents of a run folder that contents.sh printed between two marks; None if they are incomplete."""
    _before, _mark, answer = text.partition(f"{mark}\n")
    lines, ended, _after = answer.partition(f"\n{mark}\n")
    return read_contents(lines, [folder])[0].get(folder) if ended else None
