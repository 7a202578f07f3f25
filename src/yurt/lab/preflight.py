"""Checks that this machine can run a lab. Runs before anything is started, so no lab is left half-started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from yurt.errors import RefusedError, UserError
from yurt.lab import packages
from yurt.lab.instance import Instance
from yurt.lab.shell import succeeds
from yurt.model.progress import Event, Watch
from yurt.model.sizes import MB

DISK_NEEDED_MB = 600
"""Size of a new lab, with some room for its users' files."""

_PROBE = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork"]
_PROBE += ["sh", "-c", "mount -t tmpfs tmpfs /mnt && ip link add probe type veth"]


def check(instance: Instance, *, install: bool, watch: Watch) -> None:
    """Raise RefusedError or UserError if this machine cannot run a lab. Installs packages if `install`."""
    check_machine()
    check_packages(install=install, watch=watch)
    if not succeeds(_PROBE):
        raise RefusedError(
            "this machine does not allow new namespaces and mounts, which the lab's hosts need",
            code="lab-no-namespaces",
            hint="start the container with `docker run --privileged`, or use a virtual machine",
        )
    if not Path("/dev/loop-control").exists():
        raise RefusedError(
            "this machine has no loop devices, which the lab's disks need",
            code="lab-no-namespaces",
            hint="run `modprobe loop`, or start the container with `docker run --privileged`",
        )
    check_disk(instance.folder)


def check_machine(verb: str = "up") -> None:
    if not sys.platform.startswith("linux"):
        raise UserError(
            f"the lab needs Linux; this machine runs {sys.platform}",
            code="lab-not-linux",
            hint="use a Linux virtual machine, or add your own cluster with `yurt context add`",
        )
    if os.geteuid() != 0:
        raise UserError("the lab needs root", code="lab-needs-root", hint=f"run `sudo yurt lab {verb}`")


def check_packages(names: Sequence[str] = tuple(packages.PACKAGES), *, install: bool, watch: Watch) -> None:
    missing = packages.missing(names)
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise UserError(
            f"the lab needs Debian packages, and this system has no apt-get; missing: {', '.join(missing)}",
            code="lab-packages-missing",
            hint="use Debian 12, for example in a virtual machine",
        )
    if not install:
        raise UserError(
            f"Debian packages are missing: {', '.join(missing)}",
            code="lab-packages-missing",
            hint="run `yurt lab up --install` to install them without starting their services",
        )
    try:
        packages.install(missing, lambda text: watch(Event(text)))
    except packages.InstallError as error:
        raise RefusedError(
            f"the packages could not be installed: {error}",
            code="lab-install-failed",
            hint="check the network and the package sources, then run `yurt lab up --install` again",
        ) from None


def check_disk(folder: Path) -> None:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(existing).free // MB
    if free < DISK_NEEDED_MB and not (folder / "lab.json").exists():
        raise RefusedError(
            f"the lab needs {DISK_NEEDED_MB} MB of disk space, but {existing} has only {free} MB free",
            code="lab-disk-low",
            hint="free some space, or choose another disk, for example: `YURT_DATA_HOME=/big/disk yurt lab up`",
        )
