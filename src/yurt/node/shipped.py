"""The module `yurt` in a run: yurt/__init__.py in a folder at the end of PYTHONPATH.

If another yurt is found later on sys.path, such as an installed one, it is loaded instead.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from typing import Optional


def _find_later() -> Optional[ModuleSpec]:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [os.path.abspath(each) for each in sys.path]
    rest = sys.path[places.index(here) + 1 :] if here in places else []
    spec = PathFinder.find_spec("yurt", rest)
    return spec if spec is not None and spec.loader is not None and spec.origin else None


_other = _find_later() if __name__ == "yurt" else None
if _other is not None and _other.loader is not None:
    sys.modules["yurt"] = module_from_spec(_other)
    _other.loader.exec_module(sys.modules["yurt"])
else:
    from yurt.node.checkpoints import checkpointing
    from yurt.node.metrics import log
    from yurt.node.values import params

    __all__ = ["checkpointing", "log", "params"]
