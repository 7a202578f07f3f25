"""What this machine cannot give a run."""

from __future__ import annotations

from yurt.backends.local import waiter
from yurt.model.run import Resources


def faults(resources: Resources) -> list[str]:
    """What cannot work, a sentence each."""
    cores, gpus = waiter.machine()
    found = []
    if resources.cpus and resources.cpus > cores:
        found.append(f"this machine has {cores} cores, not {resources.cpus}")
    if resources.gpus and resources.gpus > gpus:
        found.append(
            f"this machine has {gpus or 'no'} GPUs, not {resources.gpus}" if gpus else "this machine has no GPUs"
        )
    return found
