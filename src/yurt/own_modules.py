"""Finds and loads yurt's own modules faster than Python does: a frequent verb imports more than a hundred of them.

Python asks every finder, and works out the paths of each module several times. This finder knows where the modules
are. It uses bytecode under the same condition as Python, that it records the size and the time of its source, and
leaves everything else to Python, such as a source that changed. Only for the command line.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader

TYPE_CHECKING = False  # importing typing or types comes later
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType


class _Loader(SourceFileLoader):
    """Loads a module whose source was found."""

    def __init__(self, name: str, path: str, cached: str, source: os.stat_result) -> None:
        super().__init__(name, path)
        self._cached = cached
        # A version and no flags, the time and the size: see PEP 552.
        self._head = b"".join(
            (
                MAGIC_NUMBER,
                bytes(4),
                (int(source.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little"),
                (source.st_size & 0xFFFFFFFF).to_bytes(4, "little"),
            )
        )

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            with open(self._cached, "rb", 0) as file:
                content = file.read()
        except OSError:
            return super().get_code(fullname)
        if content[:16] == self._head:
            code: CodeType = marshal.loads(memoryview(content)[16:])
            if code.co_filename == self.path:
                return code
        return super().get_code(fullname)


class _Finder:
    """Finds modules in the folders of yurt's packages."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        if path is None or len(path) != 1 or not name.startswith("yurt."):
            return None
        (folder,), last = path, name.rpartition(".")[2]
        inside = f"{folder}/{last}"
        try:
            return _spec(name, folder, last, os.stat(f"{inside}.py"))
        except OSError:
            pass
        try:
            spec = _spec(name, inside, "__init__", os.stat(f"{inside}/__init__.py"))
        except OSError:
            return None
        spec.submodule_search_locations = [inside]
        return spec


def _spec(name: str, folder: str, last: str, source: os.stat_result) -> ModuleSpec:
    path, cached = f"{folder}/{last}.py", f"{folder}/__pycache__/{last}.{sys.implementation.cache_tag}.pyc"
    spec = ModuleSpec(name, _Loader(name, path, cached, source), origin=path)
    spec.has_location, spec.cached = True, cached
    return spec


def find_directly() -> None:
    """Let this finder find yurt's modules, unless Python keeps bytecode elsewhere."""
    if sys.pycache_prefix is None and not sys.flags.optimize:
        sys.meta_path.insert(0, _Finder())
