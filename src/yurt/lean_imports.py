"""Imports msgspec without what yurt does not use at start-up, which would cost more than all of yurt's own modules.

Only for the command line: a program that imports yurt gets msgspec as it is. msgspec works without typing_extensions;
its parts for JSON schemas, TOML and YAML are imported when they are first used. So are `re` and what pathlib and
subprocess import for functions that yurt does not call. yurt gives msgspec no values of decimal and uuid.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock

TYPE_CHECKING = False  # importing typing or types comes later
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


class _Later(ModuleType):
    """A module that is imported when one of its names is read."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system itself asks
            raise AttributeError(name)
        return getattr(_load(self), name)


class _LaterFunctions(_Later):
    """A module of functions, which is imported when one of them is called: other modules import them by name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: object, **more: object) -> object:
            return getattr(_load(self), name)(*args, **more)

        return call


_LATER = {
    "msgspec.inspect": _Later,
    "msgspec.toml": _Later,
    "msgspec.yaml": _Later,
    "msgspec._json_schema": _LaterFunctions,
    "fnmatch": _Later,
    "locale": _Later,
    "ntpath": _Later,
    "signal": _Later,
}

_loading = allocate_lock()


def _load(module: _Later) -> Any:
    """Import the module in place of its stand-in, which has the same content from then on."""
    from importlib import import_module

    name = module.__name__
    with _loading:
        if sys.modules.get(name) is module:
            del sys.modules[name]
    found = import_module(name)
    if not isinstance(module, _LaterFunctions):
        vars(module).update(vars(found))
    return found


def postpone_re() -> None:
    """Let `re` be imported when it is first used, not by typing. Call it before typing is imported."""
    if "re" in sys.modules:
        return
    import _sre  # type: ignore[import-not-found]

    stand_in = _Later("re")
    empty: Any = _sre.compile("", 0, [1], 0, {}, (None,))
    vars(stand_in).update(
        Pattern=type(empty),
        Match=type(empty.match("")),
        compile=lambda *args, **more: _load(stand_in).compile(*args, **more),  # msgspec keeps it
    )
    sys.modules["re"] = stand_in


class _Absent:
    """Hides a module while others are imported, which do without it or need only the stand-in."""

    def __init__(self, name: str, stand_in: object = None) -> None:
        self._name, self._stand_in, self._hidden = name, stand_in, name not in sys.modules

    def __enter__(self) -> None:
        if self._hidden:
            sys.modules[self._name] = self._stand_in  # type: ignore[assignment]

    def __exit__(self, *_failure: object) -> None:
        if self._hidden and sys.modules.get(self._name, self) is self._stand_in:
            del sys.modules[self._name]


def load_msgspec() -> None:
    """Import msgspec, unless it is imported already, and pathlib."""
    if "msgspec" in sys.modules:
        return
    import typing

    _use_c_datetime()
    for name, stand_in in _LATER.items():
        if name not in sys.modules:
            sys.modules[name] = stand_in(name)
    actual = typing.ForwardRef
    typing.ForwardRef = _accept  # type: ignore
    try:
        with _Absent("typing_extensions"), _Absent("decimal", _types("Decimal")), _Absent("uuid", _types("UUID")):
            import msgspec  # noqa: F401
    finally:
        typing.ForwardRef = actual  # type: ignore[misc]
    _evaluate_directly()
    with _Absent("urllib.parse", _LaterFunctions("urllib.parse")):
        import pathlib  # noqa: F401


def _types(name: str) -> ModuleType:
    """Return a module with a class of this name, of which there are no objects."""
    made = ModuleType(name.lower())
    kinds = {
        name: type(name, (), {}),
        "SafeUUID": type("SafeUUID", (), {"unknown": None}),
    }  # msgspec asks uuid for both
    vars(made).update(kinds)
    return made


def _use_c_datetime() -> None:
    """Import datetime from its C module, as later versions of Python do; 3.11 first defines all of it in Python."""
    if sys.version_info >= (3, 12) or "datetime" in sys.modules:
        return
    try:
        import _datetime  # type: ignore[import-not-found]
    except ImportError:
        return
    sys.modules["datetime"] = _datetime


def _accept(*_arguments: object, **_more: object) -> None:
    """In place of typing.ForwardRef, while msgspec tries which arguments that has."""


def _evaluate_directly() -> None:
    """Let msgspec evaluate annotations without typing.ForwardRef: its compile() prepares classes for syntax trees."""
    utils: Any = sys.modules.get("msgspec._utils")
    if not hasattr(utils, "_forward_ref") or not hasattr(utils, "_eval_type"):
        return
    evaluate = utils._eval_type

    def evaluated(value: object, first: dict[str, object], then: dict[str, object]) -> Any:
        return evaluate(eval(value, first, then) if isinstance(value, str) else value, first, then)

    utils._forward_ref, utils._eval_type = str, evaluated
