"""The file that mrunner's get_configuration() reads: one experiment, pickled. Pure.

Protocol 0 is text, which fits into a script, and every Python reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from yurt.model.params import is_pickled
from yurt.model.run import Run


class _Call:
    """An object that is unpickled as the result of a call."""

    def __init__(self, function: Callable[..., Any], argument: Any) -> None:
        self.call = (function, (argument,))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def content(run: Run, values: Mapping[str, Any]) -> bytes:
    """Return the file for one task of a sweep, with these parameters. It contains no NUL byte."""
    import pickle  # slow to import

    experiment = {
        "project": run.project,
        "name": run.name,
        "script": " ".join(run.command),
        "tags": list(run.tags),
        "parameters": {key: _loadable(value) for key, value in values.items()},
        "git_info": None,
    }
    return pickle.dumps(experiment, 0)


def _loadable(value: Any) -> Any:
    if is_pickled(value):
        import base64
        import pickle

        return _Call(pickle.loads, _Call(base64.b64decode, value["cloudpickle"]))
    if isinstance(value, Mapping):
        return {key: _loadable(each) for key, each in value.items()}
    return [_loadable(each) for each in value] if isinstance(value, list | tuple) else value
