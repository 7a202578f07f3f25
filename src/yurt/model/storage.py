"""Storage tiers of a site: where they are, how full they are, and what the site deletes. Pure values."""

from __future__ import annotations

from typing import Literal

import msgspec

Shared = Literal["all", "node", "here"]
"""Which nodes see the files of a tier: all nodes of the site, each node its own, or only this machine."""


class TierPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A tier as far as it is known without a query."""

    name: str
    path: str
    """The folder; empty if it differs from job to job."""
    variable: str = ""
    """The variable of the site that names the folder."""
    purpose: str = ""
    """What it is for."""
    shared: Shared = "all"
    """Which nodes see its files: all, each node its own (node), or this machine (here)."""
    quota: int | None = None
    """Quota in bytes according to the context; null if it has none."""
    files_quota: int | None = None
    """Quota of files according to the context."""
    said_quota: str = ""
    """The quota as the documentation of the site states it."""
    purge_days: int | None = None
    """Days after which the site deletes files; null if it does not, or if that is unknown."""
    purge_rule: str = ""
    """Which files it deletes then."""
    backed_up: bool | None = None
    """Whether the site makes backups; null if that is unknown."""


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What a user has and may have on a file system; null where there is no limit, or none is known."""

    used: int | None = None
    """Bytes."""
    limit: int | None = None
    """Bytes: the soft limit, else the hard one."""
    files: int | None = None
    """Files and folders."""
    files_limit: int | None = None
    """Files and folders: the soft limit, else the hard one."""


class TierUse(msgspec.Struct, frozen=True, kw_only=True):
    """How full a tier is, as its site says."""

    name: str
    there: bool = False
    """Whether the folder exists."""
    writable: bool = False
    """Whether you may write to it."""
    filesystem: str = ""
    """The kind of file system, such as lustre, nfs or ext4."""
    device: str = ""
    """What is mounted there."""
    total: int | None = None
    """Bytes of the whole file system."""
    free: int | None = None
    """Bytes that are free for everyone."""
    files_total: int | None = None
    """Files that the whole file system can have."""
    files_free: int | None = None
    """Files that everyone together can still create."""
    quota: Quota | None = None
    """Your own use and quota; null if the site reports none."""
    source: str = ""
    """What reported the quota: lfs quota or quota."""


class OwnUse(msgspec.Struct, frozen=True, kw_only=True):
    """What yurt itself uses on a site."""

    kind: str
    """runs, snapshots (of code), envs, workspaces, claims (of races) or other."""
    bytes: int
    """On disk."""
    files: int
    """Files and folders."""


class StorageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a site about its tiers."""

    tiers: list[TierUse]
    report: str = ""
    """The output of the site's own command for it, if the context names one."""
    failed: str = ""
    """Why that command failed."""
    own: list[OwnUse] = []
    """What yurt uses, if that was requested."""
    own_partly: bool = False
    """Whether there was not enough time to count all of it."""
