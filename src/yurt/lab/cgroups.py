"""Memory limits of the lab's jobs: detects this machine's cgroups and creates the lab's groups.

cgroup v1 is tested. cgroup v2 is used where v1 is missing, but is untested.
Without cgroups the kernel does not enforce the memory limits of jobs.
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
    """A mounted cgroup v1 hierarchy: its controllers as mount(8) options, and its mount point."""

    options: str
    folder: Path


def hierarchies(mounts: str | None = None) -> list[Hierarchy]:
    """Return the v1 hierarchies that the lab needs, or [] if one of them is missing."""
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
    """Return the cgroup version with which this machine can enforce memory limits."""
    if hierarchies():
        return "v1"
    controllers = Path("/sys/fs/cgroup/cgroup.controllers")
    if controllers.exists() and {"memory", "cpuset"} <= set(controllers.read_text().split()):
        return "v2"
    return "none"


def usable(limits: Limits, group: str) -> bool:
    """Return whether groups can be created: a container may mount cgroups read-only."""
    try:
        join_files(limits, f"{group}/probe")
    except OSError:
        return False
    finally:
        remove(f"{group}/probe")
        for root in _roots():
            with suppress(OSError):  # not empty if the lab is running
                (root / group).rmdir()
    return True


def join_files(limits: Limits, group: str) -> list[Path]:
    """Create the group (a path such as LAB/alpha/n1); return the files a process writes its pid to to join it."""
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
            for name in ("cpuset.cpus", "cpuset.mems"):  # empty in a new group, which then accepts no process
                if (folder / name).exists() and not (folder / name).read_text().strip():
                    (folder / name).write_text((parent / name).read_text())
        joins.append(folder / "cgroup.procs")
    return joins


def _make_v2(root: Path, group: str) -> None:
    if not (root / "cgroup.controllers").exists():
        raise FileNotFoundError(errno.ENOENT, "cgroup v2 is not mounted")
    folder = root
    for part in group.split("/"):
        (folder / "cgroup.subtree_control").write_text("+memory +cpu +cpuset")
        folder = folder / part
        folder.mkdir(exist_ok=True)


def _roots() -> list[Path]:
    return [tree.folder for tree in hierarchies()] or [Path("/sys/fs/cgroup")]


def remove(group: str, *, wait: float = 10) -> None:
    """Remove the group and its subgroups from all hierarchies. Waits for processes that were just killed."""
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
