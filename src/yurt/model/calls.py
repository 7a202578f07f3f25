"""Function calls of a sweep, stored in one file that is also the program that runs them: `python FILE`. Pure.

The format: a line of text, a line of JSON, a table of fixed-size rows, the pickles, and a zip file with `__main__.py`.
Python finds the zip file from the end, and a task finds its row by its number, so a task reads only a small part of a
file with ten thousand calls.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MAGIC = b"yurt-calls 1\n"
ROW = struct.Struct("<QQQ")
"""The index of the function, and the offset and size of the arguments, counted from the end of the table."""


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Functions, their calls, and the program that runs them."""

    about: Mapping[str, Any]
    """Settings for the program, as JSON values."""
    functions: Sequence[bytes]
    """Pickled functions; with an initializer, the pickle of the function, the initializer and its arguments."""
    calls: Sequence[tuple[int, bytes]]
    """The function index and the pickled arguments of each call."""
    program: bytes
    """The zip file."""


def pack(calls: Calls) -> bytes:
    """Return the content of the file."""
    at, places = 0, []
    for each in calls.functions:
        places.append([at, len(each)])
        at += len(each)
    rows = []
    for function, arguments in calls.calls:
        rows.append(ROW.pack(function, at, len(arguments)))
        at += len(arguments)
    head = msgspec.json.encode({**calls.about, "functions": places, "count": len(rows)})
    content = [*calls.functions, *(arguments for _function, arguments in calls.calls)]
    return b"".join([MAGIC, head, b"\n", *rows, *content, calls.program])


def unpack(file: bytes) -> Calls:
    """Parse the content of a file. ValueError if it is not a file of calls."""
    if not file.startswith(MAGIC):
        raise ValueError("not a file of function calls")
    end = file.index(b"\n", len(MAGIC))
    about = msgspec.json.decode(file[len(MAGIC) : end], type=dict[str, Any])
    places, count = about.pop("functions"), about.pop("count")
    table = end + 1
    start = table + count * ROW.size
    rows = list(ROW.iter_unpack(file[table:start]))
    functions = [file[start + at : start + at + size] for at, size in places]
    last = max((at + size for at, size in [*places, *(row[1:] for row in rows)]), default=0)
    calls = [(function, file[start + at : start + at + size]) for function, at, size in rows]
    return Calls(about=about, functions=functions, calls=calls, program=file[start + last :])


def picked(calls: Calls, numbers: Sequence[int]) -> Calls:
    """Return a selection of the calls, in this order, and the functions they need."""
    chosen = [calls.calls[number] for number in numbers]
    used = {function: at for at, function in enumerate(sorted({function for function, _arguments in chosen}))}
    return msgspec.structs.replace(
        calls,
        functions=[calls.functions[function] for function in used],
        calls=[(used[function], arguments) for function, arguments in chosen],
    )


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one call, as its task wrote it."""

    ok: bool = False
    kind: str = ""
    """The kind of failure: raised, initializer, initializing (its process ended in the initializer), python, load,
    pickle, large, damaged or unsafe; empty if there is no result."""
    text: str = ""
    node: str = ""
    traceback: str = ""
    content: bytes = b""
    """The pickled value or exception; empty if it could not be pickled."""
    parts: bool = False
    """Whether `content` is the type, the arguments and the attributes of an exception that pickle cannot rebuild."""
    last_words: str = ""
    """If there is no result: the last output of the task."""
    gone: bool = False
    """Whether the run folder of the task does not exist."""
