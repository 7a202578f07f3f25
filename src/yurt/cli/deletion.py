"""When a site deletes results, in words."""

from __future__ import annotations

DAY = 86_400


def deletion(at: float, now: float) -> str:
    """Return when results are deleted: `deleted in 6 days`."""
    if at <= now:
        return "may have been deleted"
    days = int((at - now) / DAY)
    return "deleted today" if days == 0 else "deleted tomorrow" if days == 1 else f"deleted in {days} days"
