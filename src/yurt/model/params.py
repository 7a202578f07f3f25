"""Parameters of a run: what stands after `--`, as the script gets it and as people look for it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

_KEY = re.compile(r"[A-Za-z0-9_.-]+")
_SLOT = re.compile(r"(?<![${]){([A-Za-z0-9_.-]+)}(?!})")
_OPTION = re.compile(r"--([A-Za-z_][A-Za-z0-9_.-]*)(?:=(.*))?", re.DOTALL)

ARGUMENT_LIMIT = 131_071
"""Bytes in one argument or one variable: what Linux lets through."""

TOTAL_LIMIT = 1_900_000
"""Bytes in all arguments and variables together, a little below what Linux lets through."""

SETS_LIMIT = 32 << 20
"""Bytes in the parameter sets of a sweep, all of them together: they travel whenever some of its tasks do."""

VARIABLE_LIMIT = 32_768
"""A parameter longer than this is in the arguments and in $YURT_PARAMS, and in no variable of its own."""


def read(words: Sequence[str]) -> dict[str, str]:
    """The parameters in words such as --lr 0.1 --layers=3 --fast, as texts; other words are nobody's value."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        option = _OPTION.fullmatch(rest.pop(0))
        if option is None:
            continue
        key, value = option[1], option[2]
        if value is None:
            value = rest.pop(0) if rest and not _looks_like_option(rest[0]) else "true"
        found[key] = value
    return found


def _looks_like_option(word: str) -> bool:
    return word.startswith("--") or re.fullmatch(r"-[A-Za-z]\w*", word) is not None


def typed(text: str) -> Any:
    """The value a text stands for: a number, true, false, null or a JSON list; else the text, as of one too large."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return text
    return value if value is None or isinstance(value, bool | int | float | list) else text


def words(params: Mapping[str, Any]) -> list[str]:
    """The arguments a script gets for parameters: --key value; a text as it is, a list as JSON; null is left out."""
    made: list[str] = []
    for key, value in params.items():
        check_key(key)
        if not _is_null(value):
            made += [f"--{key}", as_text(value)]
    return made


def slots(words: Iterable[str]) -> set[str]:
    """Names in braces, as in --rate={lr}; a shell's ${lr} is its own, and so is {{lr}}."""
    return {name for word in words for name in _SLOT.findall(word)}


def filled(word: str, values: Mapping[str, Any]) -> str:
    """A word with values in the place of their names in braces; null is nothing, other braces stay."""

    def value(slot: re.Match[str]) -> str:
        if slot[1] not in values:
            return slot[0]
        return "" if _is_null(values[slot[1]]) else as_text(values[slot[1]])

    return _SLOT.sub(value, word)


def _is_null(value: Any) -> bool:
    return value is None or value == "null"


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def check_key(key: str) -> None:
    """ValueError where a parameter cannot be called that."""
    if not _KEY.fullmatch(key) or not key.strip("-"):
        raise ValueError(f"'{key}' is no name for a parameter: use letters, digits, '_', '.' and '-'")


def variable(key: str) -> str:
    """The environment variable that carries a parameter."""
    return "YURT_PARAM_" + re.sub(r"[^A-Za-z0-9_]", "_", key).upper()


def variables(params: Mapping[str, Any]) -> dict[str, str]:
    """Every parameter as a variable. ValueError where two keys would be one variable."""
    owners: dict[str, str] = {}
    for key in params:
        name = variable(key)
        if name in owners:
            raise ValueError(f"the parameters '{owners[name]}' and '{key}' would both be ${name}")
        owners[name] = key
    texts = {name: as_text(params[key]) for name, key in owners.items() if not _is_null(params[key])}
    return {name: text for name, text in texts.items() if len(text.encode(errors="replace")) <= VARIABLE_LIMIT}


def shown(text: str) -> str:
    """Text that JSON can hold: bytes that are no text stand as \\xNN."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
