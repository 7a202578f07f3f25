"""Imports msgspec without what yurt does not use at start-up, which would cost more than all of yurt's own modules.

Only for the command line: a program that imports yurt gets msgspec as it is. msgspec works without typing_extensions;
its parts for JSON schemas, TOML and YAML are imported when they are first used.
"""

import sys

TYPE_CHECKING = False  # importing typing or types comes later
if TYPE_CHECKING:
    from types import ModuleType
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
}


def _load(module: _Later) -> object:
    """Import the module in place of its stand-in."""
    from importlib import import_module

    name = module.__name__
    if sys.modules.get(name) is module:
        del sys.modules[name]
    return import_module(name)


def load_msgspec() -> None:
    """Import msgspec, unless it is imported already."""
    if "msgspec" in sys.modules:
        return
    hidden = "typing_extensions" not in sys.modules
    if hidden:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    for name, stand_in in _LATER.items():
        sys.modules[name] = stand_in(name)
    try:
        import msgspec  # noqa: F401
    finally:
        if hidden:
            del sys.modules["typing_extensions"]
