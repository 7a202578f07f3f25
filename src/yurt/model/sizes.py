"""Sizes of files in messages and limits: 1 MB is 1,000,000 bytes. Memory is in Slurm's units instead."""

from __future__ import annotations

MB = 1_000_000


def megabytes(size: int) -> int:
    """Return a number of bytes in MB, rounded up: a size just over a limit must read as larger than it."""
    return -(-size // MB)
