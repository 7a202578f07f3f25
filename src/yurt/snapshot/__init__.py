"""The exact code of a run: a content-addressed git tree."""

from yurt.snapshot.tree import Snapshot, take

__all__ = ["Snapshot", "take"]
