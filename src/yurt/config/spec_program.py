"""Executes a user's spec file in a separate process and writes its experiments to a pipe as JSON.

Not imported by yurt. Usage: spec_program.py FILE DESCRIPTOR SHIM LIMIT SECONDS. Output of the file is not parsed.
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
"""Names for the experiments, or for the function that returns them; the first one defined counts."""

FIELDS = ("project", "name", "script", "parameters", "env", "tags", "exclude", "python_path")
MODULE = "yurt_spec_file"

notes: dict[str, None] = {}
"""Warnings about the file, each once."""


class Invalid(Exception):
    """The file does not define valid experiments.

    The message continues a sentence that starts with the file's name, or with the number of an experiment.
    """

    def __init__(self, problem: str, experiment: int | None = None) -> None:
        super().__init__(problem)
        self.experiment = experiment


def main() -> None:
    file, pipe, shim, limit = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    signal.alarm(int(sys.argv[5]))  # stops a file that hangs if yurt was killed
    os.set_inheritable(pipe, False)
    sys.argv = [file]
    sys.path[:0] = [os.path.dirname(os.path.abspath(file)), os.getcwd()]
    sys.path.append(shim)  # last: an installed mrunner is used instead
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
    os._exit(0)  # the file's threads may still run


def _found(file: str, limit: int) -> Iterator[tuple[int, Any]]:
    with open(file, "rb") as stream:
        code = compile(stream.read(), file, "exec")
    module = types.ModuleType(MODULE)
    module.__file__ = file
    sys.modules[MODULE] = module
    vars(module)["script"] = os.path.basename(file)  # as mrunner sets it; spec files take their name from it
    exec(code, vars(module))
    name = next((each for each in NAMES if hasattr(module, each)), None)
    if name is None:
        raise Invalid("defines neither spec() nor experiments_list")
    made = getattr(module, name)
    if callable(made) and not hasattr(made, "parameters"):
        made = made()
    if isinstance(made, Mapping) or hasattr(made, "parameters"):
        made = [made]
    if made is None or isinstance(made, str | bytes) or not hasattr(made, "__iter__"):
        raise Invalid(f"must define a list of experiments as {name}, not {type(made).__name__}")
    for number, each in enumerate(made, 1):
        if number > limit:
            raise Invalid(f"defines more than {limit:,} experiments, the maximum of a sweep")
        yield number, each


def _plain(number: int, made: Any) -> dict[str, Any]:
    """Return an experiment as plain values. A mapping without `parameters` is the parameters themselves."""
    if isinstance(made, Mapping):
        fields = dict(made) if isinstance(made.get("parameters"), Mapping) else {"parameters": made}
        for key in set(fields) - set(FIELDS):
            notes[f"ignored the unknown key {key} of an experiment; valid keys: {', '.join(FIELDS)}"] = None
    elif hasattr(made, "parameters"):
        fields = {key: getattr(made, key, None) for key in FIELDS}
    else:
        raise Invalid(f"must be a mapping or an Experiment, not {type(made).__name__}", number)
    if not isinstance(fields["parameters"], Mapping):
        raise Invalid(f"parameters must be a mapping, not {type(fields['parameters']).__name__}", number)
    plain: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "parameters":
            plain[key] = {
                _key(number, name): _value(number, f"parameter '{name}'", each) for name, each in value.items()
            }
        elif value is not None and key in FIELDS:
            plain[key] = _value(number, key, value)
    plain["mrunner"] = type(made).__module__ == "mrunner.experiment"
    return plain


def _key(number: int, name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(f"parameter name {name!r} must be a string, not {type(name).__name__}", number)
    return name


def _value(number: int, what: str, value: Any) -> Any:
    try:
        return _carried(value)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{what} {error}", number) from None


def _carried(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON with the same type; a value that JSON cannot represent is pickled if possible."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ValueError("has more than 64 bits; pass it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"is {value}, which JSON cannot represent; pass it as a string or None")
        return float(value)
    if depth > 20:
        raise ValueError("is nested too deeply")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"has the dict key {key!r}; keys must be strings")
        return {key: _carried(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(each, depth + 1) for each in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy and similar
        return _carried(value.tolist(), depth + 1)
    return _pickled(value)


def _pickled(value: Any) -> dict[str, str]:
    try:
        from cloudpickle import dumps
    except ImportError:
        what = getattr(value, "__qualname__", type(value).__name__)
        raise ValueError(
            f"is not a number, string, list or dict ({what}); install cloudpickle in yurt's environment to send it"
        ) from None
    return {"pickled": repr(value)[:80], "cloudpickle": base64.b64encode(dumps(value)).decode()}


def _failure(file: str, error: BaseException) -> dict[str, Any]:
    """Return the problem, as a sentence that continues the file's name, and the line of the file that caused it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else None
    missing = experiment = None
    if isinstance(error, Invalid):
        problem, line, experiment = str(error), None, error.experiment
    elif isinstance(error, SyntaxError) and error.filename == file:
        problem, line = f"is not valid Python: {error.msg}", error.lineno
    elif isinstance(error, SystemExit):
        problem = "exited before it defined any experiments"
        if isinstance(error.code, str):
            problem += f": {error.code}"
    elif isinstance(error, OSError) and error.filename == file and not frames:
        problem = f"cannot be read: {error.strerror}"
    else:
        problem = f"failed: {type(error).__name__}: {error}".rstrip(": ")
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
    text = "".join(traceback.format_exception(error))
    where = {"line": line, "experiment": experiment}
    return {"problem": " ".join(problem.split()), **where, "missing": missing, "traceback": text}


if __name__ == "__main__":
    main()
