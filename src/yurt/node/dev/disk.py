"""Warnings before a backup fails: the shared disk, the quota or the limit for backups is nearly full."""

import os
import shutil
import subprocess
from typing import List

FREE = 0.10
NEAR = 0.90


def warnings(backups: str, held: int, limit: int) -> List[str]:
    """Return a sentence for each limit that is near. `held` is the size of the backups, `limit` 0 if there is none."""
    found = []
    try:
        disk = os.statvfs(backups)
        free = disk.f_bavail / float(disk.f_blocks or 1)
        if free < FREE:
            found.append("the disk of %s is nearly full: %.0f %% free" % (backups, 100 * free))
    except OSError as error:
        found.append("the disk of the backups cannot be read: %s" % error.strerror)
    if limit and held > NEAR * limit:
        found.append("the backups use %.0f %% of their limit; older versions are dropped" % (100.0 * held / limit))
    if shutil.which("quota"):
        found += _near_quota()
    return found


def _near_quota() -> List[str]:
    try:
        done = subprocess.run(
            ["quota", "-w"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return near_quota(done.stdout.decode("utf-8", "replace"))


def near_quota(text: str) -> List[str]:
    """Return a sentence for each line of `quota -w` whose use is near its limit.

    Lines: FILESYSTEM BLOCKS QUOTA LIMIT GRACE FILES QUOTA LIMIT GRACE. A `*` marks a value over its quota; a grace is
    there only then, so the number of files is not at a fixed column and is not read.
    """
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 4 or not words[1].rstrip("*").isdigit() or not (words[2] + words[3]).isdigit():
            continue
        used, quota = int(words[1].rstrip("*")), int(words[2]) or int(words[3])
        if quota and used > NEAR * quota:
            found.append("your quota on %s is nearly used: %.0f %%" % (words[0], 100.0 * used / quota))
    return found
