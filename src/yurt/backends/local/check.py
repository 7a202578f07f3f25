"""What this machine cannot give a run."""

from __future__ import annotations

from yurt.backends.local import waiter
from yurt.model.run import Asked


def faults(asked: Asked) -> list[str]:
    """What cannot work, a sentence each."""
    cores, gpus = waiter.machine()
    found = []
    if asked.cpus and asked.cpus > cores:
        found.append(f"this machine has {cores} cores, not {asked.cpus}")
    if asked.gpus and asked.gpus > gpus:
        found.append(f"this machine has {gpus or 'no'} GPUs, not {asked.gpus}" if gpus else "this machine has no GPUs")
    return found
