"""Matches PyTorch to the CUDA version that the driver of a site supports. No I/O.

A driver runs programs for every minor version of its major version of CUDA, and of older ones (NVIDIA's compatibility
rules), so only the major versions are compared.
"""

from __future__ import annotations

import re

from yurt.envs.lock import Lock

BACKENDS = (((12, 8), "cu128"), ((12, 0), "cu126"), ((11, 0), "cu118"))
"""The least CUDA version of a driver, and the builds of PyTorch for it in the words of uv; the first that fits."""

RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")


def needed(lock: Lock) -> str:
    """Return the CUDA version that PyTorch in a lock was built for, such as `13.2`; empty without PyTorch or CUDA."""
    versions = {each.name: each.version for each in lock.packages}
    if "torch" not in versions:
        return ""
    found = [version for name, version in versions.items() if RUNTIME.fullmatch(name)]
    return ".".join(found[0].split(".")[:2]) if found else ""


def is_too_new(lock: Lock, driver: str) -> bool:
    """Whether a lock has a PyTorch that does not run with a driver; False if one of the versions is not known."""
    wanted = needed(lock)
    return bool(driver and wanted) and _numbers(driver)[0] < _numbers(wanted)[0]


def backend(driver: str) -> str:
    """Return the value of uv's `--torch-backend` for a driver; empty if there is no PyTorch for it."""
    return next((name for least, name in BACKENDS if _numbers(driver) >= least), "")


def _numbers(version: str) -> tuple[int, int]:
    parts = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return (*parts, 0, 0)[:2]  # type: ignore[return-value]
