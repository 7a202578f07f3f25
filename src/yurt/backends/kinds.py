"""What a kind of context is like, for those who plan for it. Pure."""

from __future__ import annotations

import msgspec


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of context."""

    here: bool = False
    """Whether runs are processes of this machine."""
    scheduler: bool = False
    """Whether jobs wait in a queue: partitions, accounts and dependencies mean something."""
    probed: bool = False
    """Whether yurt asks its site for facts before it plans a run."""
    has_host: bool = True
    """Whether there is a host where commands run."""
    pauses: tuple[float, float] = (0.5, 15.0)
    """Seconds between two looks at runs: the first, and the longest."""


KINDS = {
    "local": Kind(here=True, pauses=(0.1, 2.0)),
    "slurm": Kind(scheduler=True, probed=True),
    "kubernetes": Kind(scheduler=True, has_host=False),
}


def kind_of(context_type: str) -> Kind:
    """What contexts of a type are like."""
    return KINDS.get(context_type, KINDS["kubernetes"])
