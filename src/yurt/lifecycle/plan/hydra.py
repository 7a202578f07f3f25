"""Parameters for Hydra applications, which take `key=value` instead of `--key value`. Executes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from yurt.errors import UserError
from yurt.lifecycle.plan.mrunner_script import read_text, scripts
from yurt.model import params

_IMPORT = re.compile(r"^\s*(?:import hydra\b|from hydra\b.* import\b)", re.MULTILINE)
_ARGPARSE = re.compile(r"^\s*(?:import|from) argparse\b", re.MULTILINE)
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
_QUOTED = re.compile(r"(['\"])(.*)\1", re.DOTALL)
_UNQUOTED = re.compile(r"[A-Za-z0-9_/+.%*@?|:-]+")
"""Texts that Hydra's grammar accepts without quotes."""


def is_application(words: Sequence[str]) -> bool:
    """Whether the script of a command is a Hydra application: it has @hydra.main, or imports hydra and no argparse."""
    texts = [read_text(file) for file in scripts(words, [Path()])]
    return any("@hydra.main" in text or (_IMPORT.search(text) and not _ARGPARSE.search(text)) for text in texts)


def read(arguments: Sequence[str]) -> dict[str, str]:
    """Return the parameters in overrides such as lr=0.1, +opt.beta=2 and ++seed=3, as text; ignore other arguments.

    Left out are settings of Hydra itself (hydra.…), removals (~key) and keys that are not valid names of parameters,
    such as group/option. Of keys that would use the same environment variable, the first counts.
    """
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for word in arguments:
        override = _OVERRIDE.fullmatch(word)
        if override is None or re.match(r"hydra(?:\.|$)", override[1]):
            continue
        key, value = override[1], override[2]
        if owners.setdefault(params.variable(key), key) == key:
            quoted = _QUOTED.fullmatch(value)
            found[key] = value if quoted is None else re.sub(r"\\(['\"\\])", r"\1", quoted[2])
    return found


def words(values: Mapping[str, Any]) -> list[str]:
    """Return the arguments for parameters of one run; texts that are not numbers or lists are quoted if necessary."""
    typed = {key: params.typed(each) if isinstance(each, str) else each for key, each in values.items()}
    return [f"{key}={_quoted(each) if isinstance(each, str) else params.as_text(each)}" for key, each in typed.items()]


def slots(sets: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the arguments of a sweep, with {key} in place of the values. UserError if one form does not fit all."""
    keys = dict.fromkeys(key for each in sets for key in each)
    return [f"{key}={_slot(key, sets)}" for key in keys]


def _slot(key: str, sets: Sequence[Mapping[str, Any]]) -> str:
    missing = next((number for number, each in enumerate(sets, 1) if key not in each), None)
    if missing is not None:
        problem, hint = f"set {missing} of {len(sets)} has no '{key}'", f"give every set a value for '{key}'"
        raise UserError(f"parameter {problem}, which a Hydra application needs", code="usage", hint=hint)
    values = [each[key] for each in sets]
    if all(value is None for value in values):
        return "null"
    if not any(value is None or _needs_quotes(value) for value in values):
        return f"{{{key}}}"
    if all(isinstance(value, str) and not re.search(r"['\\]", value) for value in values):
        return f"'{{{key}}}'"
    raise UserError(
        f"parameter '{key}' mixes text with special characters, or null, with other values; Hydra needs one form",
        code="usage",
        hint=f"put `{key}={{{key}}}` in the command, with the quotes that the values need",
    )


def _needs_quotes(value: Any) -> bool:
    return isinstance(value, str) and (not _UNQUOTED.fullmatch(value) or params.typed(value) != value)


def _quoted(text: str) -> str:
    if not _needs_quotes(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
