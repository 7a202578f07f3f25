"""Sizes of files in messages and limits: 1 MB is 1,000,000 bytes. Memory is in Slurm's units instead."""

from __future__ import annotations

MB = 1_000_000


def megabytes(size: int) -> int:
    """Return a number of bytes in MB, rounded up: a size just over a limit must read as larger than it."""
    return -(-size // MB)


def amount(size: float) -> str:
    """Return a number of bytes with a decimal unit: 512 B, 1.2 MB."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB" if size < 1000 else f"{size / 1000:.1f} TB"
