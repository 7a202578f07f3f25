"""A site profile: what is publicly known about a cluster. Pure values; yurt.contexts.profiles reads the files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec

from yurt.model.facts import Facts

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$(?!\n)")]
Word = Annotated[str, msgspec.Meta(pattern=r"^\w[\w.-]{0,40}$(?!\n)")]
Url = Annotated[str, msgspec.Meta(pattern=r"^https://[!-~]{4,300}$(?!\n)")]
Glob = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9*?.-]{1,100}$(?!\n)")]
Module = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*$(?!\n)", max_length=100)]
"""A module by its name. A path would load a file that another user may own."""
Folder = Annotated[str, msgspec.Meta(pattern=r"^/(?!tmp/|var/tmp/|dev/)(?!.*\.\.)[\w./+*-]{2,200}$(?!\n)")]
"""An absolute path, and not one where every user can create files."""
Storage = Annotated[str, msgspec.Meta(pattern=r"^(~|\$\w+|\$\{\w+\}|/)[\w./+$-]{0,200}$(?!\n)")]
"""A folder of the user: it begins with a variable, ~ or /."""

SAFE_KEYS = (
    *("storage_dir", "scratch_dir", "partition", "qos", "resources", "time", "nodes", "ntasks"),
    *("env_place", "env_cuda", "login_profile", "modules_to_load", "wheelhouse"),
)
"""The context keys that a profile may set: none with a command, an address or a file of this machine."""


class _Strict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class Source(_Strict, frozen=True):
    """A public page, and the day on which it was read."""

    url: Url
    """Address of the page."""
    read: datetime.date
    """When it was read."""
    note: Text | None = None
    """How it was read, if not on the site itself."""


class Purge(_Strict, frozen=True):
    """When a site deletes files by itself: `days` after the event that `rule` names, such as "files not accessed"."""

    days: Annotated[int, msgspec.Meta(ge=1, le=3650)]
    """Number of days."""
    rule: Text
    """The files to which it applies."""


class StorageArea(_Strict, frozen=True):
    """A storage area of a site, such as scratch."""

    variable: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_]\w{0,60}$(?!\n)")] | None = None
    """The variable of a login shell that names the folder."""
    purpose: Text | None = None
    """What it is for."""
    quota: Text | None = None
    """The quota, in words."""
    purge: Purge | None = None
    """When the site deletes files; null if it does not, or if it is unknown."""
    backed_up: bool | None = None
    """Whether the site makes backups."""


class Accounts(_Strict, frozen=True):
    """The rules for `account`."""

    required: bool | None = None
    """Whether a job must name an account."""
    patterns: tuple[Annotated[str, msgspec.Meta(pattern=r"^[\w*?.-]{1,60}$(?!\n)")], ...] = ()
    """Patterns of account names."""
    note: Text | None = None
    """What else users must know."""


class Jobs(_Strict, frozen=True):
    """The rules for jobs."""

    from_home: bool | None = None
    """Whether the site accepts jobs that are submitted from the home folder."""
    min_time: Annotated[str, msgspec.Meta(pattern=r"^\d+[smhd]$(?!\n)")] | None = None
    """Shortest time limit that the site recommends or accepts."""
    max_time: Annotated[str, msgspec.Meta(pattern=r"^\d+[smhd]$(?!\n)")] | None = None
    """Longest time limit."""
    max_submitted: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many jobs and array tasks a user can have in the queue."""
    name_partition: bool | None = None
    """Whether jobs name a partition; false if the site chooses one for each job."""
    note: Text | None = None
    """What else users must know."""


class Login(_Strict, frozen=True):
    """How users log in."""

    second_factor: bool | None = None
    """Whether the site asks for a second factor, such as a code or a push message."""
    keys_url: Url | None = None
    """The page where users register their public ssh key."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """The port of sshd, if it is not 22."""
    note: Text | None = None
    """What else users must know."""


class Profile(_Strict, frozen=True):
    """What is publicly known about one cluster, or about a family of clusters."""

    name: Name
    """Name of the profile."""
    title: Text
    """Name of the cluster, and who runs it."""
    sources: Annotated[tuple[Source, ...], msgspec.Meta(min_length=1)]
    """Where the facts are from."""
    documentation: Url | None = None
    """The documentation of the site."""
    hosts: tuple[Glob, ...] = ()
    """Patterns of the names of login nodes."""
    clusters: tuple[Glob, ...] = ()
    """Patterns of ClusterName in the configuration of Slurm."""
    marks: dict[Word, Text] = {}
    """Patterns of what a probe finds: CC_CLUSTER (a variable of the Alliance) and slurm_gcp. All must match."""
    login: Login = Login()
    """How users log in."""
    storage: dict[Name, StorageArea] = {}
    """Storage areas by name."""
    modules: dict[Name, Module] = {}
    """The modules that provide python, cuda, apptainer and so on."""
    internet: bool | None = None
    """Whether compute nodes reach the internet."""
    internet_note: Text | None = None
    """How they reach it."""
    accounts: Accounts = Accounts()
    """The rules for accounts."""
    jobs: Jobs = Jobs()
    """The rules for jobs."""
    partitions: dict[Word, Text] = {}
    """What the documentation says about a partition."""
    context: dict[str, Any] = {}
    """Defaults for keys of the context."""
    notes: tuple[Text, ...] = ()
    """What else users must know."""

    @property
    def keys_url(self) -> str | None:
        """The page where users register their public ssh key."""
        return self.login.keys_url

    @property
    def read(self) -> datetime.date:
        """The day on which the newest source was read."""
        return max(each.read for each in self.sources)

    def has_host(self, host: str) -> bool:
        """Whether the name of a host belongs to the site."""
        return any(fnmatchcase(host.lower().rstrip("."), glob) for glob in self.hosts)

    def fits(self, facts: Facts) -> bool:
        """Whether the facts of a probe belong to the site: its host name, or all of `clusters` and `marks`."""
        if self.has_host(facts.host):
            return True
        if not self.clusters and not self.marks:
            return False
        if self.clusters and not any(fnmatchcase(facts.cluster.lower(), glob) for glob in self.clusters):
            return False
        return all(fnmatchcase(facts.marks.get(key, ""), glob) for key, glob in self.marks.items())

    def purge_lines(self) -> Iterator[str]:
        """Yield a sentence for every storage area whose files the site deletes."""
        for name, area in self.storage.items():
            if area.purge is not None:
                yield f"{name}: {area.purge.rule} for {area.purge.days} days are deleted"
