"""Sizes, names and errors in messages for the user."""

import errno
import os


def amount(size: float) -> str:
    """Return a number of bytes with a decimal unit, as yurt.model.sizes does."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return "%.0f %s" % (size, unit) if unit == "B" or size >= 10 else "%.1f %s" % (size, unit)
        size /= 1000
    return "%.1f GB" % size if size < 1000 else "%.1f TB" % (size / 1000)


def host() -> str:
    """Return the name of this node without its domain."""
    return os.uname().nodename.split(".")[0]


def is_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def one_line(text: str) -> str:
    return " ".join(text.split())
