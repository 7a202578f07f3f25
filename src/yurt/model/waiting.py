"""A pending job of a scheduler: what it requests, and the limits that hold it up. Pure values."""

from __future__ import annotations

import msgspec

from yurt.model.live import NodeTrouble


class SiteLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of a site that a job has to respect."""

    owner: str
    """Who sets it: `partition short`, `QOS normal`, `account lab`, `your association with account lab`."""
    each: str = ""
    """What it applies to: job, node, user, account; empty for all jobs of its owner together."""
    resource: str
    """What is limited: `jobs` (running), `submitted` (jobs), `time`, or Slurm's name, such as cpu, mem, gres/gpu."""
    minutes: str = ""
    """`all` if the limit counts minutes of the resource, `running` if only those of running jobs."""
    at_least: bool = False
    """Whether it is a minimum."""
    value: float
    """The limit in Slurm's units: minutes, MB, or a number."""
    used: float | None = None
    """How much of it is used; null if that is not counted."""


class WaitingJob(msgspec.Struct, frozen=True, kw_only=True):
    """A pending job, as the scheduler describes it."""

    job: str
    reason: str = ""
    partition: str = ""
    account: str = ""
    qos: str = ""
    minutes: int | None = None
    """Its time limit."""
    requests: dict[str, float] = {}
    """What it requests by Slurm's name: cpu, mem (in MB), node, gres/gpu, …"""
    nodes: str = ""
    """The nodes that it must have, in Slurm's notation."""
    reservation: str = ""
    licenses: str = ""
    features: str = ""
    begins_at: float | None = None
    """Its earliest start."""
    admin_comment: str = ""
    """What an administrator wrote about it."""
    system_comment: str = ""
    """What Slurm or a plugin wrote about it."""
    limits: list[SiteLimit] = []
    """The limits that its reason is about."""


class EndedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a site says about a job that has ended, and about its node."""

    node: NodeTrouble | None = None
    """The state of its node now; null if that is not known."""
    admin_comment: str = ""
    """What an administrator wrote about it; empty without accounting."""
    system_comment: str = ""
    """What Slurm or a plugin wrote about it."""
    used_mb: float | None = None
    """The most memory of one of its tasks, according to accounting; null if that is unknown."""
