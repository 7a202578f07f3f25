"""Work of which many pieces refer to the same arrays: these are pickled once, and the rest of each piece apart."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import cloudpickle

LARGE = 10_000
"""Bytes from which on an array is pickled apart."""


class Together:
    """Does a piece of work there: puts it together with what all pieces share."""

    __name__ = "joblib"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __call__(self, _work: bytes) -> Any:
        import io
        import pickle

        shared = pickle.loads(self.content)

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, at: Any) -> Any:
                return shared[at]

        return Unpickler(io.BytesIO(_work)).load()()


class Sharing:
    """What is large in a first piece of work is what all of them are taken to share."""

    def __init__(self, first: Callable[[], Any]) -> None:
        self._shared: list[Any] = []  # keeps them, so that no other object gets their id
        self._places: dict[int, int] = {}
        self._pickled(first, self._found)
        self._together = Together(cloudpickle.dumps(self._shared, protocol=4))

    def split(self, work: Callable[[], Any]) -> tuple[Together, bytes]:
        """A function that is the same for all pieces, and its argument for this one."""
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
