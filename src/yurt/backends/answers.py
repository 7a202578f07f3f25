"""What backends are given and answer, as values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from yurt.model.state import Observation


class CodeParcel(msgspec.Struct, frozen=True, kw_only=True):
    """Code on its way; without a kind, only the hope that it is there already."""

    kind: str = ""
    """git, or tar where there is no git."""
    base: str = ""
    """The tree it goes on from."""
    content: bytes = b""


MakeParcel = Callable[[Sequence[str]], CodeParcel]
"""Makes the parcel for a context that knows these trees of the project; ["plain"]: it has no git."""


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a submission: a job, or the wish for code first."""

    job: str = ""
    winner: str = ""
    """What stands in the gate, if somebody has passed it: NONCE.JOB, or `cancelled`."""
    needs: list[str] | None = None
    """What the context knows of the project's code, if it has not this one."""
    base_missing: bool = False
    groups: dict[str, str] = {}
    """Of a sweep: the groups of tasks that went out, and the job of each."""


class Preview(msgspec.Struct, frozen=True):
    """What a submission would do: the command that starts it, as one would type it, and the files it makes."""

    command: str
    files: Mapping[str, bytes]


class Observed(msgspec.Struct, frozen=True):
    """What was seen of runs, and a checksum of the answer: the same again need not be read."""

    runs: dict[str, Observation]
    answer: bytes = b""
