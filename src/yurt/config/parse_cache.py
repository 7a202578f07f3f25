"""A cache of parsed files, because YAML and TOML are slow to load.

The key is the text of the file, or its digest, so a cached value is never outdated. A failure of the cache costs only
time. It is ignored if another user can change it: the text itself was checked.
"""

import contextlib
from _thread import allocate_lock
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from yurt import __version__, private
from yurt.config import paths

T = TypeVar("T")

_decoding = allocate_lock()
"""msgspec crashes if two threads use a type for the first time concurrently."""


class _Entry(msgspec.Struct, Generic[T]):
    key: str
    value: T


def cached(kind: str, text: str, shape: type[T], parse: Callable[[], T]) -> T:
    """Return what `parse` makes of a text, from the cache if possible. Errors of `parse` are raised, not cached."""
    key = f"{__version__}\n{text}"
    file = paths.data_home() / "cache" / f"{kind}.json"
    try:
        with _decoding:
            entry = msgspec.json.decode(private.read(str(file)), type=_Entry[shape])  # type: ignore[valid-type]
        if entry.key == key:
            return entry.value
    except (OSError, msgspec.MsgspecError):
        pass
    value = parse()
    with contextlib.suppress(OSError):
        paths.write_private(file, msgspec.json.encode(_Entry(key, value)))
    return value
