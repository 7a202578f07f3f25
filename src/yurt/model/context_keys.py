"""The keys of a context: their aliases, examples, and the parsers of their values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yurt.model.context import Context, ContextResources
from yurt.model.resources import parse_gpus, parse_gres, parse_memory, parse_seconds, parse_time, parse_wait
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row

EXAMPLES: dict[str, str] = {row.key: row.example for row in TABLE if row.key}
"""A valid value for each key, as YAML."""

ALIASES: dict[str, str] = {other: row.key for row in TABLE for other in row.aliases}
"""Other names of keys. In addition, `env` with a mapping is `variables`."""

UNUSED = (
    *("google_project_id", "default_pvc_size", "tpu", "log_output_path"),
    *("scratch_dir_name", "cache_dir_name", "grid_logs_dir_name", "grid_configs_dir_name"),
)
"""Keys of mrunner's contexts that have no meaning in yurt, besides every other key that starts with `registry_`."""

KEYS: tuple[str, ...] = Context.__struct_fields__
RESOURCES: tuple[str, ...] = ContextResources.__struct_fields__

_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def is_name(text: object) -> bool:
    """Whether the name is valid for a context."""
    return isinstance(text, str) and re.fullmatch(_NAME, text) is not None


def canonical_key(key: str, value: Any) -> str:
    """Return the canonical name of a key: one of KEYS, resources.cpu and so on; an unknown key is unchanged."""
    return "variables" if key == "env" and isinstance(value, Mapping) else ALIASES.get(key, key)


def is_unused(key: object) -> bool:
    """Whether a key of a context is accepted because mrunner has it, and not used."""
    return key in UNUSED or (isinstance(key, str) and key.startswith("registry_") and key not in KEYS)


def tidy(key: str, value: Any) -> Any:
    """Return a value in canonical form. ValueError says what the value must be ("must be ...")."""
    return tidy_for(_ROWS[key], value)


def tidy_for(row: Row, value: Any) -> Any:
    """Return a value of a row in canonical form. ValueError as for `tidy`."""
    return _one_of(value, row.choices) if row.form == "choice" else _FORMS[row.form](value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("must be text")


def _written(value: Any) -> str:
    """Return text, also for a number or a boolean in a TOML file."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, float) else _text(value)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18 and (text == "0" or text[0] != "0")


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not _is_whole(str(value)) or int(value) < 1:
        raise ValueError("must be a positive integer")
    return int(value)


def _range(value: Any) -> str:
    bounds = str(value).split("-")
    if isinstance(value, bool) or len(bounds) > 2 or not all(_is_whole(each) and int(each) for each in bounds):
        raise ValueError("must be a number such as 2, or a range such as 2-4")
    return str(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in _TRUTHS:
        raise ValueError("must be true or false")
    return _TRUTHS[value.lower()]


def _list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError:
            raise ValueError("must be a list of strings with closed quotes") from None
    if not isinstance(value, list | tuple) or not all(isinstance(each, str | int | float) for each in value):
        raise ValueError("must be a list of strings")
    return tuple(_written(each) for each in value)


def pairs(value: Any) -> dict[str, Any]:
    """Return a mapping, also from a list or a string of key=value items. ValueError if it is none of these."""
    if isinstance(value, str):
        value = _list(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        split = [each.partition("=") for each in value]
        value = {key.removeprefix("--"): text if equals else None for key, equals, text in split}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key.removeprefix("--") for key in value):
        raise ValueError("must be a mapping")
    return {key.removeprefix("--"): each for key, each in value.items()}


def _variables(value: Any) -> dict[str, str]:
    found = pairs(value)
    if not all(isinstance(each, str | int | float) for each in found.values()):
        raise ValueError("must be a mapping of names to text")
    return {key: _written(each) for key, each in found.items()}


def _options(value: Any) -> dict[str, str | None]:
    found = pairs(value)
    if not all(each is None or isinstance(each, str | int | float) for each in found.values()):
        raise ValueError("must be a mapping of options to text or null")
    return {key: None if each is None else _written(each) for key, each in found.items()}


def _number_or_text(value: Any) -> int | str:
    text = _text(value).strip()
    return int(text) if _is_whole(text) else text


def _checked(parse: Callable[[Any], Any], keep: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a parser that validates a value but keeps the user's notation."""

    def form(value: Any) -> Any:
        parse(value)
        return keep(value)

    return form


def _one_of(value: Any, words: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"must be {', '.join(words[:-1])} or {words[-1]}")
    return value


_FORMS: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "flag": _truth,
    "count": _whole,
    "range": _range,
    "size": _checked(parse_memory, _text),
    "time": _checked(parse_time, _number_or_text),
    "seconds": _checked(parse_seconds, _text),
    "wait": _checked(parse_wait, _text),
    "gpus": _checked(parse_gpus, _number_or_text),
    "gres": _checked(parse_gres, _text),
    "list": _list,
    "mapping": _variables,
    "options": _options,
}

_ROWS = {row.key: row for row in TABLE if row.key}
