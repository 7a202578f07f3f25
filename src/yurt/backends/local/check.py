"""Checks whether this machine can provide a run's resources."""

from __future__ import annotations

from yurt.backends.local import waiter
from yurt.model.run import Resources


def faults(resources: Resources) -> list[str]:
    """Return why a run can never start, one sentence for each problem."""
    cores, gpus = waiter.machine()
    found = []
    if resources.cpus and resources.cpus > cores:
        found.append(f"{resources.cpus} cores requested, but this machine has {cores}")
    if resources.gpus and resources.gpus > gpus:
        gpu = "GPU" if resources.gpus == 1 else "GPUs"
        found.append(f"{resources.gpus} {gpu} requested, but this machine has {gpus or 'none'}")
    return found
