"""`yurt.log`: writes metrics of a run as lines of JSON to metrics.jsonl in the run folder.

Every call is one append to the file, so that logged metrics survive if the script is killed. A call never raises: the
first failed write is reported on standard error.
"""

import errno
import json
import math
import os
import sys
import time
from typing import Any, Dict, Optional

NAME = "metrics.jsonl"
OWN = ("time", "step", "rank")
UNORDERED = ("nfs", "beegfs", "9p", "cifs", "smb", "fuse")
"""Prefixes of file system types on which two nodes that append to one file may overwrite each other."""


def _number(name: str) -> int:
    try:
        return int(os.environ.get(name) or 0)
    except ValueError:
        return 0


_rank = _number("SLURM_PROCID")
_file: Optional[int] = None
_identity: Any = None
_warned = False


def log(step: Any = None, **metrics: Any) -> None:
    """Log metrics. Outside of a run this does nothing.

        yurt.log(step=3, loss=0.2)

    NumPy, PyTorch and similar scalars are converted to plain numbers. Values that are not finite become "NaN",
    "Infinity" or "-Infinity", since JSON has no such numbers. The fields `time`, `step` and `rank` are reserved: `_` is
    appended to a metric of that name.
    """
    if _file == -1:
        return
    try:
        _append(_line(step, metrics))
    except Exception as error:
        _warn(error)


def _line(step: Any, metrics: Dict[str, Any]) -> bytes:
    text = '{"time":%.3f' % time.time()
    if step is not None:
        text += ',"step":' + _json(step)
    if _rank:
        text += ',"rank":%d' % _rank
    for name, value in metrics.items():
        text += (_names.get(name) or _key(name)) + _json(value)
    return (text + "}\n").encode("ascii")


def _json(value: Any) -> str:
    if type(value) is float and value - value == 0:  # finite
        return repr(value)
    return repr(value) if type(value) is int else _encode(_plain(value))


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_names: Dict[str, str] = {}


def _key(name: str) -> str:
    """Return a metric's name as JSON; cached, since names repeat."""
    if len(_names) > 1000:
        _names.clear()
    _names[name] = made = ",%s:" % _encode(_text(name + "_" if name in OWN else name))
    return made


def _plain(value: Any, depth: int = 0) -> Any:
    """Convert any value to one that JSON supports."""
    if isinstance(value, float):
        return _finite(float(value))
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if depth < 8:
        if isinstance(value, dict):
            return {_text(str(key)): _plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [_plain(each, depth + 1) for each in value]
        for way in ("item", "tolist", "__float__"):
            try:
                return _plain(getattr(value, way)(), depth + 1)
            except Exception:  # an array of many numbers has no single one
                continue
    return _text(str(value))


def _finite(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: str) -> str:
    """Escape lone surrogates, which are not valid UTF-8."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _append(line: bytes) -> None:
    """Append with one write. If it fails, reopen the file and retry once: the script may have closed it."""
    failed: Optional[OSError] = None
    for _try in range(2):
        before = _open() if _file is None else b""
        if _file is None or _file < 0:
            return
        try:
            if os.fstat(_file)[1:3] != _identity:  # it was closed, and its descriptor was reused
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            if os.write(_file, before + line) == len(before + line):
                return
            failed = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            failed = error
        _close(failed)
    if failed is not None:
        raise failed


def _close(failed: OSError) -> None:
    global _file
    file, _file = _file, None
    if file is not None and failed.errno != errno.EBADF:
        os.close(file)


def forget_run() -> None:
    """Close the file: a process that stays makes its next call for another run. See yurt.node.staying."""
    global _file, _warned
    file, _file, _warned = _file, None, False
    if file is not None and file >= 0:
        try:
            if os.fstat(file)[1:3] == _identity:
                os.close(file)
        except OSError:  # the script has closed it
            pass


def _open() -> bytes:
    """Open the file of this run. Return what to write before the next line: a newline if the last one is incomplete."""
    global _file, _identity
    folder = os.environ.get("YURT_RUN_DIR")
    if not folder:
        _file = -1
        return b""
    node = _number("SLURM_NODEID")
    name = "metrics.%d.jsonl" % node if node and _unordered(folder) else NAME
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    made = os.open(os.path.join(folder, name), flags, 0o600)
    about = os.fstat(made)
    complete = not about.st_size or os.pread(made, 1, about.st_size - 1) == b"\n"
    _file, _identity = made, about[1:3]
    return b"" if complete else b"\n"


def _unordered(folder: str) -> bool:
    """Return whether a folder is on a file system where each node needs its own file."""
    best, kind = "", ""
    try:
        with open("/proc/self/mounts") as mounts:
            for line in mounts:
                words = line.split()
                place = words[1].replace("\\040", " ").rstrip("/") + "/"
                if (os.path.realpath(folder) + "/").startswith(place) and len(place) >= len(best):
                    best, kind = place, words[2]
    except (OSError, IndexError):
        return True
    return kind.startswith(UNORDERED)


def _warn(error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        try:
            sys.stderr.write("yurt: cannot write metrics: %s\n" % error)
        except Exception:  # standard error may be closed
            pass
