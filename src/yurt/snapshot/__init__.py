"""The exact code of a run: every file a project has on disk now, as one content-addressed git tree."""

from yurt.snapshot.tree import Snapshot, take

__all__ = ["Snapshot", "take"]
