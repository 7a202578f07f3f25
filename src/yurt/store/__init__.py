"""The index of runs on this machine, with the outbox.

`schema.py` has its versions, `older.py` reads earlier ones.
"""

from yurt.store.archive import Mirrored
from yurt.store.bad_nodes import BadNode
from yurt.store.copies import Copy
from yurt.store.runs import Found, Store
from yurt.store.tasks import Entry

__all__ = ["BadNode", "Copy", "Entry", "Found", "Mirrored", "Store"]
