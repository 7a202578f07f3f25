"""Whether the node is in use: CPU time of the user's other processes, terminals, GPUs."""

import os
import shutil
import subprocess
from typing import Dict, Optional

from yurt.node.dev import terminals

BUSY = 0.05
"""The share of one CPU above which the user's processes count as use; editors' servers stay below it."""

GPU_BUSY = 5
"""Percent."""

PROC = "/proc"


def cpu_times(session: int, folder: str = PROC) -> Optional[Dict[str, float]]:
    """Return the CPU seconds of this user's processes, by process, without those of a session; None: cannot tell.

    Time of children that ended counts for their parent, so that short commands are seen too.
    """
    try:
        names = [each for each in os.listdir(folder) if each.isdigit()]
    except OSError:
        return None
    ticks = float(os.sysconf("SC_CLK_TCK"))
    found: Dict[str, float] = {}
    for name in names:
        path = os.path.join(folder, name)
        try:
            if os.stat(path).st_uid != os.getuid():
                continue
            with open(os.path.join(path, "stat"), "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[3]) != session:
            found[name + "." + fields[19].decode()] = sum(int(each) for each in fields[11:15]) / ticks
    return found


def gpu_use() -> int:
    """Return the highest utilisation of the job's GPUs in percent; 0 without GPUs."""
    if shutil.which("nvidia-smi") is None:
        return 0
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return max([int(each) for each in done.stdout.split() if each.isdigit()] or [0])


class Idle:
    """Samples the use of the node. `since` is when it was last used; None if this machine cannot tell."""

    def __init__(self, now: float) -> None:
        self.since: Optional[float] = now
        self._at, self._times = now, cpu_times(os.getsid(0))

    def sample(self, now: float) -> None:
        """Look again. A backup of the workspace is no use."""
        times = cpu_times(os.getsid(0))
        if times is None or self._times is None or self.since is None:
            self.since = None
            return
        used = sum(max(0.0, value - self._times.get(name, 0.0)) for name, value in times.items())
        if used > BUSY * max(now - self._at, 0.01) or gpu_use() > GPU_BUSY:
            self.since = now
        self.since = max(self.since, min(terminals.last_use(), now))
        self._at, self._times = now, times
