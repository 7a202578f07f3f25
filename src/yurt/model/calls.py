"""Calls of functions, many in one file that is also the program which makes them: `python FILE` in a task. Pure.

A line of text, a line of JSON, a table of fixed rows, the pickles, and at the end a zip file with `__main__.py`. Python
finds that from its end, and a task its own row by its number: of a file of ten thousand calls it reads a few pieces.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

MAGIC = b"yurt-calls 1\n"
ROW = struct.Struct("<QQQ")
"""Which function, and where its arguments are: counted from the end of the table."""


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """Functions, calls of them, and the program."""

    about: Mapping[str, Any]
    """What the program is to know, as JSON has it."""
    functions: Sequence[bytes]
    """Pickled."""
    calls: Sequence[tuple[int, bytes]]
    """The function of each call, and its arguments, pickled."""
    program: bytes
    """The zip file."""


def pack(calls: Calls) -> bytes:
    """The bytes of the file."""
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
    """What a file holds. ValueError: it is none of this kind."""
    if not file.startswith(MAGIC):
        raise ValueError("this is no file of calls")
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
    """Some of the calls, in this order, and the functions they need."""
    chosen = [calls.calls[number] for number in numbers]
    used = {function: at for at, function in enumerate(sorted({function for function, _arguments in chosen}))}
    return msgspec.structs.replace(
        calls,
        functions=[calls.functions[function] for function in used],
        calls=[(used[function], arguments) for function, arguments in chosen],
    )


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one call came to, as its task wrote it."""

    ok: bool = False
    kind: str = ""
    """What went wrong: raised, python, load, pickle, large or damaged; empty if there is no result."""
    text: str = ""
    node: str = ""
    traceback: str = ""
    content: bytes = b""
    """The value, or the error that was raised, pickled; empty if it could not be."""
    last_words: str = ""
    """Where there is no result: what the task wrote last."""
    gone: bool = False
    """Whether not even the folder of the task is there."""
