"""Parameters of a run: parsed from the arguments after `--`, and passed to the script. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_IN_VARIABLE = f"{_LETTERS}0123456789"
_IN_KEY = f"{_IN_VARIABLE}.-"
_SLOT = r"(?<![${]){([A-Za-z0-9_.-]+)}(?!})"

ARRAY_INDEX = "array_task_id"
"""The parameter of a task that is the index of a job array in the user's script."""

ARGUMENT_LIMIT = 131_071
"""Maximum bytes of one argument or one variable on Linux."""

TOTAL_LIMIT = 1_900_000
"""Maximum bytes of all arguments and variables, slightly below the limit of Linux."""

SETS_LIMIT = 32 << 20
"""Maximum bytes of all parameter sets of a sweep; they are uploaded with every submission of its tasks."""

VARIABLE_LIMIT = 32_768
"""A parameter longer than this is passed in the arguments and in $YURT_PARAMS, but has no variable of its own."""


def read(words: Sequence[str]) -> dict[str, str]:
    """Return the parameters in arguments such as --lr 0.1 --layers=3 --fast, as text; ignore other arguments."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        key, equals, value = word[2:].partition("=")
        if not word.startswith("--") or not key or key[0] not in _LETTERS or key.strip(_IN_KEY):
            continue
        if not equals:
            value = rest.pop(0) if rest and not _looks_like_option(rest[0]) else "true"
        found[key] = value
    return found


def _looks_like_option(word: str) -> bool:
    return word.startswith("--") or (word.startswith("-") and re.fullmatch(r"-[A-Za-z]\w*", word) is not None)


def typed(text: str) -> Any:
    """Return the value of a text: a number, true, false, null or a JSON list; else the text itself.

    A number that is too large stays text.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
    return value if value is None or isinstance(value, bool | int | float | list) else text


def words(params: Mapping[str, Any]) -> list[str]:
    """Return the arguments for parameters: --key value; text unchanged, lists as JSON, null and objects omitted."""
    made: list[str] = []
    for key, value in params.items():
        check_key(key)
        if not _is_null(value) and not has_pickled(value):
            made += [f"--{key}", as_text(value)]
    return made


def slots(words: Iterable[str]) -> set[str]:
    """Return the names in braces, as in --rate={lr}; ${lr} and {{lr}} are not placeholders."""
    return {name for word in words if "{" in word for name in re.findall(_SLOT, word)}


def filled(word: str, values: Mapping[str, Any]) -> str:
    """Replace names in braces by their values; null becomes empty, other braces stay."""

    def value(slot: re.Match[str]) -> str:
        if slot[1] not in values:
            return slot[0]
        return "" if _is_null(values[slot[1]]) else as_text(values[slot[1]])

    return re.sub(_SLOT, value, word) if "{" in word else word


def task_command(command: Sequence[str], number: int, values: Mapping[str, Any], *, passed: bool) -> list[str]:
    """Return the command of a task: braces filled, and with `passed` its other parameters as arguments at the end."""
    if not any("{" in word for word in command):  # large sweeps: most commands name nothing in braces
        return [*command, *(words(values) if passed else ())]
    named = slots(command)
    rest = {key: value for key, value in values.items() if key not in named} if passed else {}
    return [*(filled(word, {"task": number, **values}) for word in command), *words(rest)]


def _is_null(value: Any) -> bool:
    return value is None or value == "null"


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def is_pickled(value: Any) -> bool:
    """Whether a value is a Python object of a spec file, which only get_configuration() loads."""
    return isinstance(value, Mapping) and set(value) == {"pickled", "cloudpickle"}


def has_pickled(value: Any) -> bool:
    """Whether a value is or contains a pickled object."""
    if is_pickled(value):
        return True
    each = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(has_pickled, each))


def summary(value: Any) -> str:
    """Return a value for people: as passed to the script, but a pickled object as Python shows it."""
    if is_pickled(value):
        return str(value["pickled"])
    return as_text(_readable(value)) if has_pickled(value) else as_text(value)


def _readable(value: Any) -> Any:
    if is_pickled(value):
        return value["pickled"]
    if isinstance(value, Mapping):
        return {key: _readable(each) for key, each in value.items()}
    return [_readable(each) for each in value] if isinstance(value, list | tuple) else value


def check_key(key: str) -> None:
    """ValueError if the name is not valid for a parameter."""
    if key.strip(_IN_KEY) or not key.strip("-"):
        raise ValueError(f"invalid parameter name '{key}': use letters, digits, '_', '.' and '-'")


def variable(key: str) -> str:
    """Return the name of the environment variable for a parameter."""
    return "YURT_PARAM_" + (re.sub(r"[^A-Za-z0-9_]", "_", key) if key.strip(_IN_VARIABLE) else key).upper()


def variables(params: Mapping[str, Any]) -> dict[str, str]:
    """Return every parameter as an environment variable. ValueError if two keys map to the same variable."""
    owners: dict[str, str] = {}
    for key in params:
        name = variable(key)
        if name in owners:
            raise ValueError(f"parameters '{owners[name]}' and '{key}' use the same variable ${name}")
        owners[name] = key
    texts = {name: as_text(params[key]) for name, key in owners.items() if not _is_null(params[key])}
    return {name: text for name, text in texts.items() if len(text.encode(errors="replace")) <= VARIABLE_LIMIT}


def shown(text: str) -> str:
    """Return text that JSON can represent: bytes that are not text become \\xNN."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
