"""Properties of each kind of context, used for planning. Pure."""

from __future__ import annotations

import msgspec


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a kind of context."""

    here: bool = False
    """Whether runs are processes on this machine."""
    scheduler: bool = False
    """Whether a scheduler queues jobs, so that partitions, accounts and dependencies have a meaning."""
    probed: bool = False
    """Whether yurt probes the site for facts before it plans a run."""
    has_host: bool = True
    """Whether there is a host to run commands on."""


KINDS = {
    "local": Kind(here=True),
    "slurm": Kind(scheduler=True, probed=True),
    "kubernetes": Kind(scheduler=True, has_host=False),
}

SLURM = "Slurm"
ACCOUNTING = "accounting"
"""The parts of a site that may not respond although its login node does."""


def kind_of(context_type: str) -> Kind:
    """Return the properties of a context type."""
    return KINDS.get(context_type, KINDS["kubernetes"])
