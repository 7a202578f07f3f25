"""Small file systems for the researcher's folder on a shared disk of a cluster: real limits of bytes and of files."""

from __future__ import annotations

from pathlib import Path

from yurt.lab.cluster import Cluster, inside
from yurt.lab.shell import run
from yurt.lab.topology import ALICE, MOUNTS

MIB = 1 << 20


def limit(cluster: Cluster, disk: str, *, megabytes: int, files: int) -> None:
    """Mount an empty file system of this size over the researcher's folder on a disk, on all hosts.

    `files`: how many files and folders it can have. What was in the folder is hidden until `unlimit`.
    """
    unlimit(cluster, disk)
    image = _image(cluster, disk)
    with image.open("wb") as file:
        file.truncate(megabytes * MIB)
    # Twelve inodes are for the file system itself: its root, its journal, lost+found.
    run(
        ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-N", str(files + 12), str(image)], code="lab-fault-failed"
    )
    device = run(["losetup", "--find", "--show", str(image)], code="lab-fault-failed").strip()
    minor = device.removeprefix("/dev/loop")
    mount = (
        'set -e; [ -b "/dev/$1" ] || mknod "/dev/$1" b 7 "$2"; mount -o noatime "/dev/$1" "$3";'
        ' rmdir "$3/lost+found" 2> /dev/null || :; chown "$4:$4" "$3"; chmod 700 "$3"'
    )
    words = [f"loop{minor}", minor, _folder(disk), str(ALICE.uid)]
    try:
        for pid in _hosts(cluster):
            run(inside(pid, ["sh", "-c", mount, "sh", *words]), code="lab-fault-failed")
    finally:
        run(["losetup", "--detach", device], code="lab-fault-failed")  # when it is unmounted everywhere


def unlimit(cluster: Cluster, disk: str) -> None:
    """Undo `limit`."""
    unmount = 'while grep -q " $1 ext4 " /proc/mounts; do umount -l "$1" || exit; done'
    for pid in _hosts(cluster):
        run(inside(pid, ["sh", "-c", unmount, "sh", _folder(disk)]), code="lab-fault-failed")
    _image(cluster, disk).unlink(missing_ok=True)


def _folder(disk: str) -> str:
    return f"{MOUNTS[disk]}/{ALICE.name}"


def _image(cluster: Cluster, disk: str) -> Path:
    return cluster.folder / "images" / f"limit-{disk}.img"


def _hosts(cluster: Cluster) -> list[int]:
    return [pid for name, pid in cluster.pids().items() if name != "fabric"]
