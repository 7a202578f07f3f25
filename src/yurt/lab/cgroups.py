"""Memory limits for the lab's jobs: which control groups this machine has, and the lab's part of them.

v1 is proven. v2 is attempted where it is all there is (unverified: no machine at hand had it).
Without either, jobs are not held to their memory by the kernel.
"""

from __future__ import annotations

import errno
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Limits = Literal["v1", "v2", "none"]

WANTED = ("memory", "freezer", "cpuset", "cpuacct", "devices")


@dataclass(frozen=True)
class Hierarchy:
    """One mounted tree of control groups: its controllers as mount(8) takes them, and its folder."""

    options: str
    folder: Path


def hierarchies(mounts: str | None = None) -> list[Hierarchy]:
    """The v1 trees the lab needs, or [] where one of them is missing."""
    text = Path("/proc/self/mounts").read_text() if mounts is None else mounts
    found: dict[str, Hierarchy] = {}
    for line in text.splitlines():
        _source, folder, kind, options, *_rest = line.split()
        if kind != "cgroup":
            continue
        mounted = [name for name in options.split(",") if name in (*WANTED, "cpu")]
        for name in mounted:
            found.setdefault(name, Hierarchy(",".join(mounted), Path(folder)))
    if any(name not in found for name in WANTED):
        return []
    return sorted({found[name] for name in WANTED}, key=lambda one: one.options)


def detect() -> Limits:
    """How this machine can hold jobs to their memory."""
    if hierarchies():
        return "v1"
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    if controllers.exists() and {"memory", "cpuset"} <= set(controllers.read_text().split()):
        return "v2"
    return "none"


def usable(limits: Limits, group: str) -> bool:
    """Whether groups of that kind can be made here: a container may show them and allow nothing."""
    try:
        join_files(limits, f"{group}/probe")
    except OSError:
        return False
    finally:
        remove(f"{group}/probe")
        for root in _roots():
            with suppress(OSError):  # not empty: the lab is up
                (root / group).rmdir()
    return True


def join_files(limits: Limits, group: str) -> list[Path]:
    """Make the group (a path like LAB/alpha/n1) and name the files through which a process joins it."""
    if limits == "none":
        return []
    if limits == "v2":
        _make_v2(Path("/sys/fs/cgroup"), group)
        return [Path("/sys/fs/cgroup") / group / "cgroup.procs"]
    joins = []
    for tree in hierarchies():
        folder = tree.folder
        for part in group.split("/"):
            parent, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group, and must not be
                if (folder / name).exists() and not (folder / name).read_text().strip():
                    (folder / name).write_text((parent / name).read_text())
        joins.append(folder / "cgroup.procs")
    return joins


def _make_v2(root: Path, group: str) -> None:
    if not (root / "cgroup.controllers").exists():
        raise FileNotFoundError(errno.ENOENT, "no control groups of version 2 here")
    folder = root
    for part in group.split("/"):
        (folder / "cgroup.subtree_control").write_text("+memory +cpu +cpuset")
        folder = folder / part
        folder.mkdir(exist_ok=True)


def _roots() -> list[Path]:
    return [tree.folder for tree in hierarchies()] or [Path("/sys/fs/cgroup")]


def remove(group: str, *, wait: float = 10) -> None:
    """Remove the group and all below it, everywhere; processes just killed are waited for."""
    for root in _roots():
        deadline = time.monotonic() + wait
        while (root / group).exists():
            for folder in [*sorted((root / group).rglob("*/"), reverse=True), root / group]:
                with suppress(OSError):
                    folder.rmdir()
            if time.monotonic() > deadline:
                break
            if (root / group).exists():
                time.sleep(0.02)
