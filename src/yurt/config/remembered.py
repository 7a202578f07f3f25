"""What a file was understood to say, kept so that it need not be understood again: YAML is slow to load.

Known by the file's own text, so nothing old is ever believed. Whatever goes wrong here costs only time.
"""

import contextlib
from _thread import allocate_lock
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from yurt import __version__
from yurt.config import paths

T = TypeVar("T")

_learning = allocate_lock()
"""Two threads that use a type of msgspec's for the first time at once crash it."""


class _Kept(msgspec.Struct, Generic[T]):
    key: str
    value: T


def remembered(kind: str, text: str, shape: type[T], understand: Callable[[], T]) -> T:
    """What `understand` makes of a text, or made of it the last time. Its errors are raised, and not kept."""
    key = f"{__version__}\n{text}"
    file = paths.data_home() / "cache" / f"{kind}.json"
    try:
        with _learning:
            kept = msgspec.json.decode(file.read_bytes(), type=_Kept[shape])  # type: ignore[valid-type]
        if kept.key == key:
            return kept.value
    except (OSError, msgspec.MsgspecError):
        pass
    value = understand()
    with contextlib.suppress(OSError):
        paths.write_private(file, msgspec.json.encode(_Kept(key, value)))
    return value
