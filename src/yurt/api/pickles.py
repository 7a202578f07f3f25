"""Pickles function calls for the site, and unpickles their results."""

from __future__ import annotations

import inspect
import io
import linecache
import os
import re
import stat
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import cloudpickle

from yurt.api.errors import BrokenExecutorError, CallError, RemoteError, RemoteTraceback
from yurt.model.calls import CallResult, Calls
from yurt.model.site_words import count
from yurt.model.sizes import MB, megabytes
from yurt.node import call as program
from yurt.node import staying
from yurt.store import Entry

LARGEST = 100 * MB
"""Size limit, in bytes, of one call's arguments and of its result."""

LARGEST_SOURCE = 10 * MB
"""Size limit, in bytes, of a script whose lines are shown in a traceback."""

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

PROTOCOL = 4
"""A version of pickle that old Pythons can read."""


def dump(value: Any, what: str) -> bytes:
    """Pickle a function or its arguments. CallError: they cannot be pickled, or are too large."""
    try:
        content: bytes = cloudpickle.dumps(value, protocol=PROTOCOL)
    except Exception as error:
        raise CallError(
            f"cannot pickle {what}: {type(error).__name__}: {error}",
            code="call-not-sent",
            hint="pass only picklable values; create files, locks and connections inside the function",
        ) from error
    if len(content) > LARGEST:
        raise CallError(
            f"the pickled size of {what} is {megabytes(len(content))} MB; the limit is {megabytes(LARGEST)} MB",
            code="call-not-sent",
            hint="write large data to a file on the site and pass the file's name",
        )
    return content


def by_value(function: bytes, arguments: bytes) -> bool:
    """Whether a call contains functions or classes of a script or notebook, which only the same Python can load."""
    return b"cloudpickle" in function or b"cloudpickle" in arguments


def packed(calls: Sequence[tuple[bytes, bytes]], *, folder: Path, subfolder: str) -> Calls:
    """Return calls, packed for one file. `folder` is the project's; `subfolder` is the working directory below it."""
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
    """Return the entries of sys.path inside the project, relative to its folder."""
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
    """Return the program that makes a call on the site: a zip file for Python, with this machine's cloudpickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(program.__file__, "__main__.py")
        archive.write(staying.__file__, "yurt_staying.py")
        for each in sorted(Path(cloudpickle.__file__).parent.glob("*.py")):
            archive.write(each, f"cloudpickle/{each.name}")
    return file.getvalue()


def title(function: Callable[..., Any]) -> str:
    """Return the name of a function for display."""
    while isinstance(function, partial):
        function = function.func
    name: str = getattr(function, "__name__", type(function).__name__)
    return "lambda" if name == "<lambda>" else name


def shown(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as parameters to display and filter by; short plain values as they are, others as their repr.

    Omits parameters whose name starts with `_`.
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
    """Return the result of a call. Raises what its function raised, or CallError."""
    if result.ok:
        try:
            return cloudpickle.loads(result.content)
        except Exception as error:
            text = f"cannot unpickle the result on this machine: {type(error).__name__}: {error}"
            hint = "on this machine, install the package that defines the returned object, or return plain values"
            raise _error(entry, text, "result-not-sent", hint) from error
    if result.kind == "raised":
        raise _raised(result) from remote_traceback(result)
    raise _why(entry, result)


def remote_traceback(result: CallResult) -> RemoteTraceback:
    """Return the traceback of an exception on the site."""
    return RemoteTraceback(_with_source(result.traceback))


_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>[0-9]{1,9}), in .+')


def _with_source(text: str) -> str:
    """Add lines of source that only this machine has, of a script or a notebook, to a remote traceback."""
    lines = text.splitlines(keepends=True)
    found = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        found.append(line)
        frame = _FRAME.fullmatch(line.rstrip("\n"))
        if frame is not None and not following.startswith("    ") and _is_source(frame["file"]):
            source = linecache.getline(frame["file"], int(frame["line"])).strip()
            found += [f"    {source}\n"] if source else []
    return "".join(found)


def _is_source(file: str) -> bool:
    """Whether a file that a site names is a cell of this notebook or a script, which can be read without a risk."""
    if file in linecache.cache:
        return True
    try:
        about = os.stat(file)
    except (OSError, ValueError):
        return False
    return file.endswith(".py") and stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST_SOURCE


def _raised(result: CallResult) -> BaseException:
    try:
        found = cloudpickle.loads(result.content)
        found = _rebuilt(*found) if result.parts else found
    except Exception:
        found = None
    return found if isinstance(found, BaseException) else RemoteError(result.text)


def _rebuilt(kind: type[BaseException], arguments: tuple[Any, ...], state: Mapping[str, Any]) -> BaseException:
    """Return an exception without a call of its own constructor, whose arguments are not known."""
    base: Any = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    error: BaseException = base.__new__(kind, *arguments)
    base.__init__(error, *arguments)
    BaseException.__setstate__(error, dict(state))
    return error


def _why(entry: Entry, result: CallResult) -> CallError:
    """Return the error for a call without a result."""
    where = f" on {result.node}" if result.node else ""
    if result.kind == "python":
        hint = f"create the executor with a `venv=` or `conda=` that has Python {HERE}, or with `python='python{HERE}'`"
        return _error(entry, f"the call cannot be unpickled{where}: {result.text}", "call-python", hint)
    ended = result.kind == "initializing" and entry.status.state in ("completed", "failed", "out_of_memory")
    if result.kind == "initializer" or ended:
        why = _how_it_ended(entry) if ended else result.text
        error = _error(
            entry,
            f"the initializer of the executor failed: {why}",
            "call-initializer",
            "correct the initializer, and create a new executor with `yurt.executor(…)`",
            kind=BrokenExecutorError,
        )
        error.__cause__ = None if ended else remote_traceback(result)
        return error
    if result.kind == "load":
        text, hint = f"the call could not be loaded{where}: {result.text}", _hint_to_load(result.text)
        return _error(entry, text, "call-not-loaded", hint)
    return _unusable(entry, result) if result.kind not in ("", "initializing") else _died(entry, result)


def _how_it_ended(entry: Entry) -> str:
    """Return how the process of a call ended that wrote no result."""
    status = entry.status
    how = status.reason or (f"exit code {status.exit_code}" if status.exit_code is not None else "")
    return f"its process ended abruptly{f' ({how})' if how else ''}"


def _unusable(entry: Entry, result: CallResult) -> CallError:
    """Return the error for a result that cannot be used."""
    if result.kind == "large":
        size, most = ([megabytes(count(word)) for word in result.text.split()] + ["?", "?"])[:2]
        hint = "write large results to `$YURT_OUTPUTS`, return the file's name, and download it with `yurt fetch`"
        return _error(entry, f"the result is {size} MB; the limit is {most} MB", "result-not-sent", hint)
    if result.kind == "unsafe":
        text = (
            f"yurt does not unpickle the result: another user may have changed it, because `result` in "
            f"{entry.run.folder} on {entry.run.context} is not a regular file that only you can write to"
        )
        hint = f"check who can write to the folder, then run the call again with `yurt retry {entry.run.id}`"
        return _error(entry, text, "result-unsafe", hint)
    if result.kind == "damaged":
        hint = f"run the call again with `yurt retry {entry.run.id}`"
        return _error(entry, "the result file is damaged", "result-not-sent", hint)
    hint = "return plain values, or write the result to a file"
    return _error(entry, f"the result cannot be pickled: it is {result.text}", "result-not-sent", hint)


def _died(entry: Entry, result: CallResult) -> CallError:
    run, status = entry.run.id, entry.status
    if not result.last_words and status.exit_code == program.UNWRITTEN:
        text = f"the result could not be written on {entry.run.context}: the disk or your quota may be full"
        return _error(
            entry, text, "result-not-sent", f"free some space, then run the call again with `yurt retry {run}`"
        )
    if result.gone and status.started:
        text = f"the result is gone: the run folder no longer exists on {entry.run.context}"
        return _error(entry, text, "call-without-result", f"run the call again with `yurt retry {run}`")
    why = f": {status.reason}" if status.reason else ""
    state = status.state.replace("_", " ")
    last = f"; last line of its output: {result.last_words.splitlines()[-1]}" if result.last_words else ""
    text, hint = f"the call finished without a result ({state}){why}{last}", f"see its output with `yurt logs {run}`"
    return _error(entry, text, "call-without-result", hint)


_ABSENT = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")


def _hint_to_load(text: str) -> str:
    """Return the hint for a call that could not be loaded."""
    found = _ABSENT.match(text)
    file = getattr(sys.modules.get(found[1]), "__file__", None) if found is not None else None
    if file and not {"site-packages", "dist-packages"} & set(file.split("/")):
        return f"the module is in {os.path.dirname(file)}; start Python in the folder of that project"
    return "install the module on the site, and pass its environment to the executor as `venv=` or `conda=`"


def _error(entry: Entry, text: str, code: str, hint: str = "", *, kind: type[CallError] = CallError) -> CallError:
    error = kind(f"{entry.run.id}: {text}", code=code, hint=hint)
    error.task = entry.run.id
    return error
