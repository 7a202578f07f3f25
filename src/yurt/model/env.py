"""Environments that yurt builds on a site. Pure values."""

from __future__ import annotations

from typing import Literal

import msgspec

EnvKind = Literal["lock", "conda"]
"""How an environment is built: from a lock of Python packages, or by conda."""

EnvPlace = Literal["scratch", "home", "tmpdir"]
"""Where an environment is kept: in yurt's folder on the site, in the home folder there, or in yurt's folder and, in a
job, unpacked onto the disk of each node."""

EnvCondition = Literal["ready", "building", "failed", "changed", "purged", "none"]


class RunEnv(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of a run that yurt builds."""

    address: str
    """Its address: a checksum of the declaration, the modules, the Python version and the platform."""
    title: str
    """The file that declares it, such as requirements.txt."""
    folder: str
    """Its folder on the context."""
    python: str
    """The version of its Python."""
    lock: str = ""
    """A checksum of the packages it was planned with; empty if they are chosen on the site."""
    packages: int = 0
    """The number of its packages; 0 if they are chosen on the site."""
    place: EnvPlace = "scratch"
    """Where it is kept: scratch, home or tmpdir."""
    modules: list[str] = []
    """Modules for its Python, which are loaded after those of the context."""
    torch: str = ""
    """The builds of PyTorch that the driver of the context needs, such as cu126; empty for the usual ones."""


class EnvTools(msgspec.Struct, frozen=True, kw_only=True):
    """What a site has for building environments."""

    asked_at: float
    machine: str
    libc: str
    """Such as `glibc 2.36`."""
    pythons: list[SitePython] = []
    uv: str = ""
    conda: str = ""
    compiler: str = ""
    cuda: str = ""
    """The newest CUDA version that the driver supports; empty if the login node has no GPU."""
    index: bool = False
    """Whether the login node reaches a package index."""
    cpu_seconds: int | None = None
    """CPU time that a process on the login node may use; null means no limit."""
    modules_failed: str = ""
    """Why the modules of the context could not be loaded."""
    python_modules: list[str] = []
    """Modules that provide a Python, such as `python/3.11.5`."""


class SitePython(msgspec.Struct, frozen=True):
    """A Python on a site."""

    version: str
    path: str
    venv: bool
    """Whether it can create virtual environments with pip."""


class EnvBuild(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to build an environment on a site."""

    folder: str
    kind: EnvKind
    definition: bytes
    """JSON in one line, for lists of environments."""
    lock: bytes = b""
    """The packages, for `lock`; for conda those of an earlier build, or empty."""
    environment: bytes = b""
    """The content of environment.yml, for conda."""
    python: str = ""
    """The program; or `managed:3.12`, which uv downloads on the site."""
    uv: str = ""
    """The program, or empty for pip."""
    installer: str = ""
    """The installer of conda for a site without it: an address, or a file among yurt's programs on the site."""
    cuda: str = ""
    """The CUDA version that the driver of the site supports, for conda; empty if it is not known."""
    wheels: list[str] = []
    """Files to install from: uploaded ones as SHA256/NAME, and absolute paths of wheels that the site has."""
    no_index: bool = False
    """Whether only these files are used, and no index."""
    modules_init: str = ""
    modules: list[str] = []
    pack: bool = False
    """Whether it is also packed into one file, for the disks of nodes."""
    on_node: list[str] | None = None
    """Options of sbatch, to build in a job; None to build on the login node."""


class SiteWheel(msgspec.Struct, frozen=True, array_like=True):
    """A wheel on a site, and what its metadata says about its requirements."""

    path: str
    metadata: str


class SiteWheels(msgspec.Struct, frozen=True, kw_only=True):
    """What a wheelhouse has of some packages."""

    asked: list[str] = []
    """The names of the packages that were looked for, with those that the wheels require."""
    wheels: list[SiteWheel] = []
    missing: list[str] = []
    """Folders of the wheelhouse that do not exist."""


class EnvState(msgspec.Struct, frozen=True, kw_only=True):
    """An environment on a site, as last seen."""

    folder: str
    condition: EnvCondition
    entries: int = 0
    """Number of its files and folders."""
    kilobytes: int = 0
    pack_kilobytes: int = 0
    """Size of the file for the disks of nodes; 0 if there is none."""
    installed: int = 0
    """Number of packages that are installed so far."""
    phase: str = ""
    """What its builder does: starting, creating, installing, packing; empty if there is none."""
    built: float | None = None
    used: float | None = None
    definition: bytes = b""
    failure: str = ""
    """Why the last build failed, and the end of its log."""
    lacking: list[str] = []
    """The packages that the index of the site lacks; the build waits until their files are uploaded."""
    change: str = ""
    """How its packages differ from those that were built, if somebody has added some."""
    lock: str = ""


class UnusedEnv(msgspec.Struct, frozen=True, kw_only=True):
    """Files of environments on a site that nobody has used for a while."""

    what: Literal["environment", "replaced", "wheels"]
    """An environment; an older copy of one, which was built again after a purge; uploaded wheels that none needs."""
    address: str = ""
    files: int = 0
    kilobytes: int = 0
    used: float | None = None
    definition: bytes = b""
