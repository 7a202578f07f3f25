"""Snapshots: the exact code of a run as a content-addressed git tree. The user's repository does not change."""

from yurt.snapshot.tree import Snapshot, take

__all__ = ["Snapshot", "take"]
