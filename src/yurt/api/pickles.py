"""Calls of functions as they travel, and what they come back as."""

from __future__ import annotations

import inspect
import io
import linecache
import os
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import cloudpickle

from yurt.api.errors import CallError, RemoteError, RemoteTraceback
from yurt.model.calls import CallResult, Calls
from yurt.node import call as program
from yurt.store import Entry

LARGEST = 100 << 20
"""Bytes of one call's arguments, or of its result."""

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

PROTOCOL = 4
"""Of pickle; also an old Python reads it."""


def dump(value: Any, what: str) -> bytes:
    """A function, or arguments, pickled. CallError: it cannot travel."""
    try:
        content: bytes = cloudpickle.dumps(value, protocol=PROTOCOL)
    except Exception as error:
        raise CallError(f"{what} cannot travel: {type(error).__name__}: {error}", code="call-not-sent") from error
    if len(content) > LARGEST:
        raise CallError(
            f"{what} takes {_megabytes(len(content))} MB, and at most {_megabytes(LARGEST)} MB travel with a call",
            code="call-not-sent",
            hint="write it to a file on the site, and pass the file's name",
        )
    return content


def _megabytes(size: int) -> int:
    """As many as it takes: what is over a limit reads so."""
    return -(-size >> 20)


def packed(calls: Sequence[tuple[bytes, bytes]], *, folder: Path, subfolder: str) -> Calls:
    """Calls of functions, for one file; `folder` is the project's, and in `subfolder` the user stands."""
    functions = list(dict.fromkeys(function for function, _arguments in calls))
    number = {function: at for at, function in enumerate(functions)}
    about = {
        "python": HERE,
        "largest": LARGEST,
        "up": os.path.relpath(".", subfolder) if subfolder else ".",
        "paths": _paths(folder),
    }
    rows = [(number[function], arguments) for function, arguments in calls]
    return Calls(about=about, functions=functions, calls=rows, program=_program())


def _paths(folder: Path) -> list[str]:
    """Where Python looks for modules, as far as that is in the project; from its folder."""
    root = os.path.realpath(folder)
    found = []
    for each in sys.path:
        real = os.path.realpath(each or ".")
        inside = real == root or real.startswith(f"{root}/")
        if inside and os.path.isdir(real) and not {"site-packages", "dist-packages"} & set(real.split("/")):
            found.append(os.path.relpath(real, root))
    return list(dict.fromkeys(found))


@cache
def _program() -> bytes:
    """What makes a call over there: a zip file that Python starts, with our cloudpickle in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(program.__file__, "__main__.py")
        for each in sorted(Path(cloudpickle.__file__).parent.glob("*.py")):
            archive.write(each, f"cloudpickle/{each.name}")
    return file.getvalue()


def title(function: Callable[..., Any]) -> str:
    """What to call a function."""
    while isinstance(function, partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else name


def shown(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the parameters people look for them by: those that are short and plain as they are.

    A parameter whose name begins with `_` is left out.
    """
    try:
        bound = inspect.signature(function).bind(*arguments, **named)
    except (TypeError, ValueError):
        given = {f"arg{at}": each for at, each in enumerate(arguments)} | dict(named)
    else:
        kinds = {name: each.kind for name, each in bound.signature.parameters.items()}
        given = {}
        for name, value in bound.arguments.items():
            given |= value if kinds[name] is inspect.Parameter.VAR_KEYWORD else {name: value}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name.isascii() and not name.startswith("_") and name.upper() not in {each.upper() for each in found}:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, bool | None) or (type(value) is int and abs(value) < 1 << 63):
        return value
    if type(value) is float and value - value == 0:
        return value
    if type(value) is str and len(value) <= 200 and "\0" not in value:
        return value
    if type(value) in (list, tuple) and len(value) <= 20:
        return [_plain(each) for each in value]
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text.replace("\0", "") if len(text) <= 80 else f"{text[:77]}…".replace("\0", "")


def value_of(entry: Entry, result: CallResult) -> Any:
    """The value a call came to. Raises what its function raised, or CallError."""
    if result.ok:
        try:
            return cloudpickle.loads(result.content)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            raise _error(entry, f"the result cannot be read here: {words}", "result-not-sent") from error
    if result.kind == "raised":
        raise _raised(result) from RemoteTraceback(_with_source(result.traceback))
    raise _why(entry, result)


_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+), in .+')


def _with_source(text: str) -> str:
    """A traceback with the lines of code that are here and were not there: of a script, of a notebook."""
    lines = text.splitlines(keepends=True)
    found = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        found.append(line)
        frame = _FRAME.fullmatch(line.rstrip("\n"))
        if frame is not None and not following.startswith("    "):
            source = linecache.getline(frame["file"], int(frame["line"])).strip()
            found += [f"    {source}\n"] if source else []
    return "".join(found)


def _raised(result: CallResult) -> BaseException:
    try:
        found = cloudpickle.loads(result.content)
    except Exception:
        found = None
    return found if isinstance(found, BaseException) else RemoteError(result.text)


def _why(entry: Entry, result: CallResult) -> CallError:
    """The error for a call without a value."""
    where = f" on {result.node}" if result.node else ""
    if result.kind == "python":
        hint = f"give the executor a venv= or conda= with Python {HERE}, or python='python{HERE}'"
        return _error(entry, f"the call cannot be read{where}: {result.text}", "call-python", hint)
    if result.kind == "load":
        text, hint = f"the call could not be loaded{where}: {result.text}", _missing(result.text)
        return _error(entry, text, "call-not-loaded", hint)
    if result.kind:
        text, hint = _unusable(result)
        return _error(entry, text, "result-not-sent", hint)
    return _died(entry, result)


def _unusable(result: CallResult) -> tuple[str, str]:
    """What is wrong with a result, and what to do."""
    if result.kind == "large":
        size, most = (_megabytes(int(word)) for word in result.text.split())
        hint = "write it into $YURT_OUTPUTS and return its name; yurt fetch brings it"
        return f"the result takes {size} MB, and at most {most} MB travel", hint
    if result.kind == "damaged":
        return "the file of the result is damaged", "yurt retry RUN"
    return f"the result cannot travel: it is {result.text}", ""


def _died(entry: Entry, result: CallResult) -> CallError:
    run, status = entry.run.id, entry.status
    if not result.last_words and status.exit_code == program.UNWRITTEN:
        text = f"the result could not be written on {entry.run.context}: the disk or your quota may be full"
        return _error(entry, text, "result-not-sent", f"yurt retry {run}")
    if result.gone and status.started:
        text = f"the result is gone: its folder is not on {entry.run.context} any more"
        return _error(entry, text, "call-without-result", f"yurt retry {run}")
    why = f": {status.reason}" if status.reason else ""
    state = status.state.replace("_", " ")
    last = f"; it last said: {result.last_words.splitlines()[-1]}" if result.last_words else ""
    return _error(
        entry, f"the call ended without a result ({state}){why}{last}", "call-without-result", f"yurt logs {run}"
    )


_ABSENT = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")


def _missing(text: str) -> str:
    """What to do where a call could not be loaded."""
    found = _ABSENT.match(text)
    file = getattr(sys.modules.get(found[1]), "__file__", None) if found is not None else None
    if file and not {"site-packages", "dist-packages"} & set(file.split("/")):
        return f"it is in {os.path.dirname(file)}: start Python in the folder of that project"
    return "install it there, and give the executor its venv= or conda="


def _error(entry: Entry, text: str, code: str, hint: str = "") -> CallError:
    error = CallError(f"{entry.run.id}: {text}", code=code, hint=hint)
    error.task = entry.run.id
    return error
