"""Munch: a dict whose keys are attributes too. If the real munch is found later on sys.path, it is loaded instead."""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Any, Dict, Iterable, Optional


class Munch(dict):  # type: ignore[type-arg]
    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> Iterable[str]:
        return [key for key in self if isinstance(key, str)]

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, dict.__repr__(self))

    def __getstate__(self) -> Dict[Any, Any]:
        return dict(self)

    def __setstate__(self, state: Dict[Any, Any]) -> None:
        self.clear()
        self.update(state)

    @property
    def __dict__(self) -> Dict[Any, Any]:  # type: ignore[override]
        return dict(self.toDict())

    def toDict(self) -> Any:
        return unmunchify(self)

    def copy(self) -> "Munch":
        return type(self)(self)

    @classmethod
    def fromDict(cls, values: Any) -> Any:
        return munchify(values, cls)


def munchify(value: Any, factory: Any = Munch) -> Any:
    """Return the value with every dict in it replaced by a Munch."""
    if isinstance(value, dict):
        return factory((key, munchify(each, factory)) for key, each in value.items())
    if type(value) in (list, tuple):
        return type(value)(munchify(each, factory) for each in value)
    return value


def unmunchify(value: Any) -> Any:
    """Return the value with every Munch in it replaced by a plain dict."""
    if isinstance(value, dict):
        return {key: unmunchify(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(unmunchify(each) for each in value)
    return value


def _find_later() -> Optional[ModuleSpec]:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [os.path.abspath(each) for each in sys.path]
    rest = sys.path[places.index(here) + 1 :] if here in places else []
    spec = PathFinder.find_spec("munch", rest)
    return spec if spec is not None and spec.loader is not None and spec.origin else None


_other = _find_later() if __name__ == "munch" else None
if _other is not None and _other.loader is not None:
    sys.modules["munch"] = module_from_spec(_other)
    _other.loader.exec_module(sys.modules["munch"])
