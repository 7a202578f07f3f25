"""What must be true of this machine before a lab is started: checked first, so nothing is half-started."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from yurt.errors import RefusedError, UserError
from yurt.lab import packages
from yurt.lab.instance import Instance
from yurt.lab.shell import succeeds
from yurt.model.progress import Event, Watch

DISK_NEEDED_MB = 600
"""What a fresh lab writes, with room for what its users do first."""

_PROBE = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--fork"]
_PROBE += ["sh", "-c", "mount -t tmpfs tmpfs /mnt && ip link add probe type veth"]


def check(instance: Instance, *, install: bool, watch: Watch) -> None:
    """Raise with one sentence and the remedy unless a lab can be started here."""
    check_machine()
    check_packages(install=install, watch=watch)
    if not succeeds(_PROBE):
        raise RefusedError(
            "this machine does not allow new namespaces and mounts, so the lab's hosts cannot be made",
            code="lab-no-namespaces",
            hint="inside a container: start it with --privileged; otherwise use a virtual machine",
        )
    if not Path("/dev/loop-control").exists():
        raise RefusedError(
            "this machine has no loop devices, so the lab's disks cannot be mounted",
            code="lab-no-namespaces",
            hint="run as root: modprobe loop; inside a container: start it with --privileged",
        )
    check_disk(instance.folder)


def check_machine(verb: str = "up") -> None:
    if not sys.platform.startswith("linux"):
        raise UserError(
            f"the lab needs Linux, and this is {sys.platform}",
            code="lab-not-linux",
            hint="run it in a Linux virtual machine, or use a cluster of your own: yurt context add",
        )
    if os.geteuid() != 0:
        raise UserError("the lab needs root", code="lab-needs-root", hint=f"run it as root: sudo yurt lab {verb}")


def check_packages(*, install: bool, watch: Watch) -> None:
    missing = packages.missing()
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise UserError(
            f"the lab is built from Debian packages, and this system has no apt-get; missing: {', '.join(missing)}",
            code="lab-packages-missing",
            hint="use Debian 12 or a virtual machine of it",
        )
    if not install:
        raise UserError(
            f"Debian packages are missing: {', '.join(missing)}",
            code="lab-packages-missing",
            hint="yurt lab up --install installs them and starts none of their services",
        )
    try:
        packages.install(missing, lambda text: watch(Event(text)))
    except packages.InstallError as error:
        raise RefusedError(
            f"the packages could not be installed: {error}",
            code="lab-install-failed",
            hint="check the network and the package sources, then repeat: yurt lab up --install",
        ) from None


def check_disk(folder: Path) -> None:
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free >> 20
    if free < DISK_NEEDED_MB and not (folder / "lab.json").exists():
        raise RefusedError(
            f"the lab needs {DISK_NEEDED_MB} MB of disk and {there} has {free} MB free",
            code="lab-disk-low",
            hint="free some, or put the lab elsewhere: YURT_DATA_HOME=/big/disk yurt lab up",
        )
