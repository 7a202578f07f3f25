"""What a sync of one pair of places did, and what a round of all pairs did. Pure."""

from __future__ import annotations

import os

import msgspec

NOT_CONFIRMED = "deleted with many other files; not confirmed"
"""Why a sync skips a path that is part of a large deletion."""


class Skipped(msgspec.Struct, frozen=True):
    """A path that was not synced, and why. Bytes that are not UTF-8 are surrogates, as in `os.fsdecode`."""

    path: str
    """Relative to the roots."""
    why: str
    """The reason; in the words of Unison, where yurt has no better ones."""
    unreadable: bool = False
    """Whether the user cannot read it on one of the places."""


class Deletion(msgspec.Struct, frozen=True, kw_only=True):
    """Many files that were deleted on one place. The other one keeps them until the user confirms the deletion."""

    path: str
    """What was deleted, or the folder that it was in; empty: the root."""
    place: str
    """Where it was deleted."""
    other: str
    """The place that still has it."""
    files: int
    """The number of files."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One sync of one pair."""

    hub: str
    """The place in the middle."""
    spoke: str
    """The other place."""
    began: float
    """When the first pass began."""
    ended: float
    """When the last pass ended."""
    code: int
    """The exit code of Unison: 0 clean, 1 paths were skipped, 2 paths failed, 3 nothing is known to be in sync."""
    transferred: int = 0
    """Changed files and folders that were copied or deleted; a new or deleted folder counts once."""
    to_hub: int = 0
    """Changes that the hub received."""
    to_spoke: int = 0
    """Changes that the other place received."""
    deleted: int = 0
    """Files that were deleted, also those in deleted folders."""
    size: int | None = None
    """Bytes of the transferred files; None if that is not known."""
    skipped: list[Skipped] = []
    """Conflicts: each side keeps its own version. Also the paths in `deletions`."""
    deletions: list[Deletion] = []
    """Large deletions that were not copied."""
    failed: list[Skipped] = []
    """Paths that could not be read, written or copied."""
    released: list[str] = []
    """Jobs that waited for this sync and were released, as CONTEXT:JOB."""
    paths: list[str] = []
    """The paths that this sync was limited to (`-path`); empty: everything."""
    problem: str = ""
    """Why nothing was synced, if the code is 3."""
    problem_code: str = ""
    """The code of that error, see yurt.errors.CODES."""
    problem_exit: int = 0
    """The exit code of that error."""
    hint: str = ""
    """What to do about the problem."""
    left: list[str] = []
    """Jobs that waited for this sync and could not be released, as CONTEXT:JOB and the reason."""
    warnings: list[str] = []
    """What else the user should know."""
    unsure: list[str] = []
    """Files that were edited so shortly before the sync that the next one compares their contents."""
    setup: str = ""
    """Stands for the profile and the settings with which Unison ran; empty: a look showed that nothing had changed."""
    token: str = ""
    """What both sides have noted when a sync of everything began."""
    backups: dict[str, list[str]] = {}
    """By place: the folders that received the versions that this sync replaced or deleted."""

    @property
    def pair(self) -> str:
        return pair_name(self.hub, self.spoke)

    @property
    def conflicts(self) -> list[Skipped]:
        """The skipped paths that changed on both sides."""
        return [each for each in self.skipped if each.why != NOT_CONFIRMED]

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Round(msgspec.Struct, frozen=True):
    """One `yurt home sync`: the outcome of every pair, the last one if a pair was synced twice."""

    outcomes: list[Outcome]

    @property
    def code(self) -> int:
        """The highest exit code of all pairs."""
        return max((each.code for each in self.outcomes), default=0)

    @property
    def exit_code(self) -> int:
        """The exit code of `yurt home sync`: 0, 1 conflicts or failed files, 4 unreachable, 5 refused."""
        return max((each.problem_exit for each in self.outcomes), default=0) or min(1, self.code)


def shown(path: str) -> str:
    """Return a path that JSON can hold: with a backslash and hexadecimal digits for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def pair_name(hub: str, spoke: str) -> str:
    """Return the name of a pair: local-alpha."""
    return f"{hub}-{spoke}"
