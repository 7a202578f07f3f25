"""Splits work items that refer to the same arrays: pickles the arrays once, and the rest of each item separately."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

LARGE = 10_000
"""Size in bytes from which an array is shared."""


class Together:
    """The function that runs on the site: unpickles one work item with the shared arrays, and calls it."""

    __name__ = "joblib"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __call__(self, _work: bytes) -> Any:

        shared = pickle.loads(self.content)

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, at: Any) -> Any:
                return shared[at]

        return Unpickler(io.BytesIO(_work)).load()()


class Sharing:
    """Pickles work items. The large arrays of the first item are the shared ones."""

    def __init__(self, first: Callable[[], Any]) -> None:
        self._shared: list[Any] = []  # holds references, so that no other object gets their id
        self._places: dict[int, int] = {}
        self._pickled(first, self._found)
        self._together = Together(cloudpickle.dumps(self._shared, protocol=4))

    def split(self, work: Callable[[], Any]) -> tuple[Together, bytes]:
        """Return the function, the same for all items, and its argument for this item."""
        return self._together, self._pickled(work, lambda each: self._places.get(id(each)))

    def _found(self, each: Any) -> int | None:
        if id(each) not in self._places and hasattr(type(each), "nbytes") and each.nbytes >= LARGE:
            self._places[id(each)] = len(self._shared)
            self._shared.append(each)
        return self._places.get(id(each))

    @staticmethod
    def _pickled(work: Any, place: Callable[[Any], int | None]) -> bytes:
        class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
            def persistent_id(self, each: Any) -> int | None:
                return place(each)

        file = io.BytesIO()
        Pickler(file, protocol=4).dump(work)
        return file.getvalue()


cloudpickle.register_pickle_by_value(sys.modules[__name__])
