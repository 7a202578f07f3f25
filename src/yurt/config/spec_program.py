"""Executes a spec file of the user's, in a process of its own, and writes the experiments it makes to a pipe, as JSON.

Not imported by yurt. usage: spec_program.py FILE DESCRIPTOR SHIM LIMIT SECONDS. What the file prints is for people.
"""

from __future__ import annotations

import base64
import json
import math
import os
import signal
import sys
import traceback
import types
from collections.abc import Iterator, Mapping
from typing import Any

NAMES = ("experiments_list", "spec", "experiment")
"""What a file may call its experiments, or the function that makes them; the first that it has counts."""

FIELDS = ("project", "name", "script", "parameters", "env", "tags", "exclude", "python_path")
MODULE = "yurt_spec_file"

notes: dict[str, None] = {}
"""What is said of the file besides, each sentence once."""


class Unfit(Exception):
    """The file gave something that is no experiment; said in a sentence that goes on from the file's name."""


def main() -> None:
    file, pipe, shim, limit = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    signal.alarm(int(sys.argv[5]))  # where yurt was killed, nobody else ends a file that hangs
    os.set_inheritable(pipe, False)
    sys.argv = [file]
    sys.path[:0] = [shim, os.path.dirname(os.path.abspath(file)), os.getcwd()]
    try:
        answer: dict[str, Any] = {"experiments": [_plain(number, each) for number, each in _found(file, limit)]}
        answer["notes"] = [*getattr(sys.modules.get("mrunner"), "notes", []), *notes]
        text = json.dumps(answer, allow_nan=False)
    except BaseException as error:
        text = json.dumps(_failure(file, error))
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(pipe, "w", encoding="utf-8") as stream:
        stream.write(text)
    os._exit(0)  # threads of the file's may still run


def _found(file: str, limit: int) -> Iterator[tuple[int, Any]]:
    with open(file, "rb") as stream:
        code = compile(stream.read(), file, "exec")
    module = types.ModuleType(MODULE)
    module.__file__ = file
    sys.modules[MODULE] = module
    vars(module)["script"] = os.path.basename(file)  # as mrunner sets it; files take their name from it
    exec(code, vars(module))
    name = next((each for each in NAMES if hasattr(module, each)), None)
    if name is None:
        raise Unfit("has neither spec() nor experiments_list")
    made = getattr(module, name)
    if callable(made) and not hasattr(made, "parameters"):
        made = made()
    if isinstance(made, Mapping) or hasattr(made, "parameters"):
        made = [made]
    if made is None or isinstance(made, str | bytes) or not hasattr(made, "__iter__"):
        raise Unfit(f"gives no list of experiments as {name}, but {type(made).__name__}")
    for number, each in enumerate(made, 1):
        if number > limit:
            raise Unfit(f"gives more than {limit:,} experiments, and a sweep has at most as many")
        yield number, each


def _plain(number: int, made: Any) -> dict[str, Any]:
    """An experiment in plain values. A mapping without `parameters` is the parameters themselves."""
    if isinstance(made, Mapping):
        fields = dict(made) if isinstance(made.get("parameters"), Mapping) else {"parameters": made}
        for key in set(fields) - set(FIELDS):
            notes[f"{key} of an experiment is left aside: yurt knows {', '.join(FIELDS)}"] = None
    elif hasattr(made, "parameters"):
        fields = {key: getattr(made, key, None) for key in FIELDS}
    else:
        raise Unfit(f"gives no mapping and no Experiment as experiment {number}, but {type(made).__name__}")
    if not isinstance(fields["parameters"], Mapping):
        raise Unfit(f"gives experiment {number} parameters that are no mapping")
    plain: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "parameters":
            plain[key] = {_key(number, name): _value(number, name, each) for name, each in value.items()}
        elif value is not None and key in FIELDS:
            plain[key] = _value(number, key, value)
    plain["mrunner"] = type(made).__module__ == "mrunner.experiment"
    return plain


def _key(number: int, name: Any) -> str:
    if not isinstance(name, str):
        raise Unfit(f"gives experiment {number} a parameter called {name!r}, and names are texts")
    return name


def _value(number: int, name: str, value: Any) -> Any:
    try:
        return _carried(value)
    except (TypeError, ValueError) as error:
        raise Unfit(f"gives experiment {number} a value of {name} that {error}") from None


def _carried(value: Any, depth: int = 0) -> Any:
    """A value as JSON has it, of the same type; what has no place in JSON is pickled, if that can be."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("has more than 64 bits; give it as text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"is {value}, which JSON cannot carry; give it as text, or None")
        return float(value)
    if depth > 20:
        raise ValueError("nests too deeply")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"has the key {key!r} in a dict, and keys are texts")
        return {key: _carried(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(each, depth + 1) for each in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # of numpy, or like it
        return _carried(value.tolist(), depth + 1)
    return _pickled(value)


def _pickled(value: Any) -> dict[str, str]:
    try:
        from cloudpickle import dumps
    except ImportError:
        what = getattr(value, "__qualname__", type(value).__name__)
        raise ValueError(
            f"is no number, text, list or dict ({what}); with cloudpickle installed beside yurt it could be sent"
        ) from None
    return {"pickled": repr(value)[:80], "cloudpickle": base64.b64encode(dumps(value)).decode()}


def _failure(file: str, error: BaseException) -> dict[str, Any]:
    """What went wrong, in words that go on from the file's name, and the line of the file it went wrong in."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else None
    missing = None
    if isinstance(error, Unfit):
        problem, line = str(error), None
    elif isinstance(error, SyntaxError) and error.filename == file:
        problem, line = f"is no valid Python: {error.msg}", error.lineno
    elif isinstance(error, SystemExit):
        problem = "ended itself before it gave experiments"
        if isinstance(error.code, str):
            problem += f": {error.code}"
    elif isinstance(error, OSError) and error.filename == file and not frames:
        problem = f"cannot be read: {error.strerror}"
    else:
        problem = f"failed: {type(error).__name__}: {error}".rstrip(": ")
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
    words = " ".join(problem.split())
    told = "".join(traceback.format_exception(error))
    return {"problem": words, "line": line, "missing": missing, "traceback": told}


if __name__ == "__main__":
    main()
