"""Runs one function call of `yurt.executor`: the program in a file of calls, see yurt.model.calls.

The result is written to a temporary file and renamed to `result` in the run folder: a line of JSON, then a pickle.
Standard library only; cloudpickle is included in the file.
"""

import json
import os
import struct
import sys
import traceback
from typing import Any, Dict, List, Optional, Tuple

AGAIN = 85
"""The exit code that requests a restart; the task has no result yet."""

UNWRITTEN = 74
"""The exit code if the result cannot be written: EX_IOERR of sysexits.h."""

EXPECTED = (("optuna.exceptions", "TrialPruned"),)
"""Exceptions, as module and name, that report an outcome and no failure: the exit code of the task is 0."""

TARGET = os.path.join(os.environ.get("YURT_RUN_DIR", ""), "result")
"""The file of the result, determined before the function can change the environment."""

FILE = sys.path[0]
"""The file of calls."""

SEARCHED: List[str] = []
"""The search path of a process before its first call."""

LOADED: Dict[int, Any] = {}
"""The functions that are loaded, by their index: a process that stays loads each once, as it calls its initializer."""


def main(number: int, target: str) -> int:
    """Make a call and write its result. Returns the exit code of its task."""
    global TARGET
    TARGET = target
    if os.path.exists(TARGET):
        os.unlink(TARGET)  # from an earlier start
    about, which, function, arguments = _read(FILE, number)
    here = "%d.%d" % sys.version_info[:2]
    if here != about["python"] and b"cloudpickle" in function + arguments:
        text = "it was submitted by Python %s and runs on Python %s (%s)" % (about["python"], here, sys.executable)
        return _failed("python", text)
    if not SEARCHED:
        root = os.path.normpath(os.path.join(os.getcwd(), about["up"]))
        sys.path[1:1] = [os.path.normpath(os.path.join(root, each)) for each in about["paths"]]
        SEARCHED[:] = sys.path
    try:
        import cloudpickle

        call = LOADED[which] if which in LOADED else cloudpickle.loads(function)
        call, initializer, its_arguments = call if type(call) is tuple else (call, None, ())
        given = cloudpickle.loads(arguments)
    except (Exception, SystemExit) as error:  # some modules exit when they cannot be imported
        traceback.print_exc()
        return _failed("load", "%s (Python is %s)" % (_describe(error), sys.executable))
    if getattr(call, "__module__", "") == "__main__":
        for name, each in getattr(call, "__globals__", {}).items():
            globals().setdefault(name, each)  # multiprocessing looks up a script's functions there
    kind, own = "initializer", os.getpid()
    try:
        if initializer is not None:
            _write({"ok": False, "kind": "initializing"}, b"")  # stays if the process dies
            initializer(*its_arguments)
            os.unlink(TARGET)
        LOADED[which] = call
        kind = "raised"
        result = [call(*each) for each in given] if isinstance(given, list) else call(*given[0], **given[1])
        _leave_a_fork(own)
    except BaseException as error:
        _leave_a_fork(own, error)
        if isinstance(error, SystemExit) and error.code == AGAIN:
            raise
        code = _raised(error, cloudpickle, kind)
        if kind == "initializer":
            sys.exit(code)  # no other call may run in this process
        return code
    try:
        content = cloudpickle.dumps(result, protocol=4)
    except Exception as error:
        return _failed("pickle", "a %s: %s" % (type(result).__name__, _describe(error)))
    if len(content) > about["largest"]:
        return _failed("large", "%d %d" % (len(content), about["largest"]))
    _write({"ok": True}, content)
    return 0


def _leave_a_fork(own: int, error: Optional[BaseException] = None) -> None:
    """End a process that the function forked: only the process of the call, `own`, has a result."""
    if os.getpid() == own:
        return
    code: Any = 0
    if isinstance(error, SystemExit):
        code = error.code
    elif error is not None:
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    try:
        if code is not None and not isinstance(code, int):
            sys.stderr.write("%s\n" % code)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit((code or 0) & 255)


def _read(file: str, number: int) -> Tuple[Dict[str, Any], int, bytes, bytes]:
    """Return what all calls share, and the index of the function, the function and the arguments of one call."""
    row = struct.Struct("<QQQ")
    with open(file, "rb") as stream:
        stream.readline()
        about = json.loads(stream.readline().decode())
        table = stream.tell()
        start = table + about["count"] * row.size
        stream.seek(table + number * row.size)
        which, at, size = row.unpack(stream.read(row.size))
        stream.seek(start + at)
        arguments = stream.read(size)
        at, size = about["functions"][which]
        stream.seek(start + at)
        return about, which, stream.read(size), arguments


def _raised(error: BaseException, cloudpickle: Any, kind: str) -> int:
    """Write the error that the function, or the initializer, raised: as text, and pickled if that is possible."""
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    lines = traceback.format_exception(type(error), error, trace)
    sys.stderr.write("".join(lines))
    content, parts = _pickled(error, cloudpickle)
    head = {
        "ok": False,
        "kind": kind,
        "text": _describe(error),
        "traceback": _encodable("".join(lines)),
        "parts": parts,
    }
    _write(head, content)
    names = [(each.__module__, each.__name__) for each in type(error).__mro__]
    return 0 if kind == "raised" and any(each in EXPECTED for each in names) else 1


def _pickled(error: BaseException, cloudpickle: Any) -> Tuple[bytes, bool]:
    """Return a pickle of an exception, empty if there is none, and whether it holds the parts of the exception.

    pickle rebuilds an exception by a call of its class with `args`. That fails, or has another result, if the
    constructor takes other arguments than it passes on.
    """
    try:
        content = cloudpickle.dumps(error, protocol=4)
        if _describe(cloudpickle.loads(content)) == _describe(error):
            return content, False
    except Exception:
        pass
    base: Any = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
    arguments, state = (*base.__reduce__(error)[1:], {})[:2]
    kept = {}
    for name, each in state.items():
        try:
            cloudpickle.loads(cloudpickle.dumps(each, protocol=4))
            kept[name] = each
        except Exception:  # a lock or a file; the exception is worth more than this attribute
            pass
    try:
        return cloudpickle.dumps((type(error), arguments, kept), protocol=4), True
    except Exception:
        return b"", False


def _failed(kind: str, text: str) -> int:
    sys.stderr.write("yurt: %s: %s\n" % (kind, text))
    _write({"ok": False, "kind": kind, "text": text, "node": os.uname().nodename}, b"")
    return 1


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(no message: str() failed)"
    return _encodable("%s: %s" % (type(error).__name__, text) if text else type(error).__name__)


def _encodable(text: str) -> str:
    """Return a text without the surrogates of bytes that are no UTF-8."""
    return text.encode("utf8", "backslashreplace").decode("utf8")


def _write(head: Dict[str, Any], content: bytes) -> None:
    aside = "%s.%s.%d" % (TARGET, os.uname().nodename, os.getpid())
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(json.dumps(head).encode() + b"\n")
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, TARGET)
    except BaseException:
        os.unlink(aside)
        raise


def run(number: int, target: str) -> int:
    """Run a call and return its exit code. On a full disk only the exit code shows the failure."""
    try:
        return main(number, target)
    except OSError:
        try:  # on a full disk the log cannot be written either
            os.write(2, traceback.format_exc().encode("utf8", "backslashreplace"))
        except OSError:
            pass
        return UNWRITTEN


if __name__ == "__main__":
    channel = os.environ.pop("YURT_CALL_CHANNEL", "")
    if channel:
        from yurt_staying import stay  # type: ignore[import-not-found]

        sys.exit(stay(int(channel), run, SEARCHED))
    sys.exit(run(int(os.environ["YURT_TASK_INDEX"]), TARGET))
