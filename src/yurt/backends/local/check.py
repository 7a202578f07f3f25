"""Checks whether this machine can provide a run's resources."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from yurt.backends.local import waiter
from yurt.model.run import Resources


def faults(resources: Resources) -> list[str]:
    """Return why a run can never start, one sentence for each problem."""
    cores, gpus = waiter.cores(), waiter.gpus() if resources.gpus else 0
    found = []
    if resources.cpus and resources.cpus > cores:
        found.append(f"{resources.cpus} cores requested, but this machine has {cores}")
    if resources.gpus and resources.gpus > gpus:
        gpu = "GPU" if resources.gpus == 1 else "GPUs"
        found.append(f"{resources.gpus} {gpu} requested, but this machine has {gpus or 'none'}")
    memory = memory_mb() if resources.memory_mb else None
    if memory and resources.memory_mb and resources.memory_mb > memory:
        found.append(
            f"{_gigabytes(resources.memory_mb)} of memory requested, but this machine has {_gigabytes(memory)}"
        )
    least = re.match(r"\d+", resources.nodes or "")
    if least and int(least[0]) > 1:
        found.append(f"{least[0]} nodes requested, but this machine is one node")
    return found


def memory_mb() -> int | None:
    """Return the memory of this machine; None if the system does not report it."""
    with suppress(ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)
    return None


def _gigabytes(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f}".removesuffix(".0") + "G"
