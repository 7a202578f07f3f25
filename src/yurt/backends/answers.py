"""Arguments and results of backends. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from yurt.model.state import Observation
from yurt.model.status_answer import RunFiles
from yurt.model.storage import TierUse


class CodeParcel(msgspec.Struct, frozen=True, kw_only=True):
    """Code to upload. Without a kind it is empty, and the code is expected to be on the site already."""

    kind: str = ""
    """`git`, or `tar` if the site has no git."""
    base: str = ""
    """The tree on the site that `content` is a delta to; empty if `content` is complete."""
    content: bytes = b""

    @property
    def large(self) -> bool:
        """Whether its upload is an operation of its own, so that no other command waits for it."""
        return len(self.content) > LARGE

    @property
    def digest(self) -> str:
        import hashlib

        return hashlib.sha256(self.content).hexdigest()


LARGE = 1_000_000
"""Code above this size in bytes is uploaded in pieces, before the run."""

Uploaded = Literal["complete", "no git", "no base"]
"""Result of a large upload: complete; or the site needs a tar file, or all of the code."""

MakeParcel = Callable[[Sequence[str]], CodeParcel]
"""Make the parcel for a site that has these trees of the project; ["plain"]: the site has no git."""


class ChangedFiles(msgspec.Struct, frozen=True):
    """Files of code on a site that are not as they were uploaded: the names of the first ones, and their number."""

    names: list[str] = []
    count: int = 0


class Asked(msgspec.Struct, frozen=True):
    """The result of a command on a node: its exit code and output."""

    code: int
    out: bytes
    err: bytes


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a submission: a job, or a request to upload the code first."""

    job: str = ""
    winner: str = ""
    """Content of the gate if it is already closed: NONCE.JOB, or `cancelled`."""
    needs: list[str] | None = None
    """Trees of the project that the site has, if this tree is missing there."""
    base_missing: bool = False
    needs_env: bool = False
    """Whether the environment of the run is neither built nor being built."""
    env_change: str = ""
    """How the packages of its environment differed from those that were built; it is built again."""
    building: bool = False
    """Whether the job is held until the environment is built."""
    changed: ChangedFiles = ChangedFiles()
    """Files of the code that a purge removed or a run changed; they were uploaded again, or will be."""
    groups: dict[str, str] = {}
    """Sweeps: the job of each submitted group of tasks."""
    room: TierUse | None = None
    """How full the storage tier of the run is, if that was requested."""


class Preview(msgspec.Struct, frozen=True):
    """What a submission would do: the command it runs, as a user would type it, and the files it writes."""

    command: str
    files: Mapping[str, bytes]


class Observed(msgspec.Struct, frozen=True):
    """Observations of runs, and a checksum of the site's output that tells whether anything changed."""

    runs: dict[str, Observation]
    answer: bytes = b""
    held: dict[str, str] = {}
    """Sweeps of which all pending tasks are held, and why."""
    files: RunFiles | None = None
    """What was read in the folder of a running run; None if that was not requested, or is not possible."""


LostStart = Literal["over", "wait", "keeps"]
"""Whether a lost start of a run has ended for good, will have soon, or may be followed by another one on its site."""


class Want(msgspec.Struct, frozen=True):
    """A claim that a job waits for."""

    folder: int
    """The number of its run folder in the request."""
    task: int | None
    """For a sweep: its task."""
    word: str
    """The word of the question, which the answer repeats."""
    item: int
    candidate: str
