"""Finds likely mistakes in the words of `yurt run`. Reads files of the project; changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from yurt.cli.declare import Parameter
from yurt.errors import UserError

SCRIPTS = (".py", ".sh", ".sbatch", ".slurm")
EVERYONES = {"--help", "--json", "--quiet", "--verbose"}
"""Options of yurt that most programs have too."""

HEAD = 1 << 20
"""How many bytes of a script are searched for the name of an option."""

EXAMPLES = {"cpus": "4", "gpus": "1", "mem": "8G", "time": "2h", "nodes": "2", "ntasks": "4"}
"""Options whose value is never a file, each with a valid value."""


def check(words: Sequence[str], options: Mapping[str, Any], parameters: Sequence[Parameter]) -> list[str]:
    """Return warnings about the words of a command. UserError for a mistake that cannot be a valid run."""
    _check_swallowed(words, options, parameters)
    return [*_spaces_in_grid(words, options), *_misplaced(words, parameters)]


def _check_swallowed(words: Sequence[str], options: Mapping[str, Any], parameters: Sequence[Parameter]) -> None:
    """Raise UserError if an option took the script as its value."""
    if options["spec"] and not words:  # the spec file may name the script
        return
    for parameter in parameters:
        value = options.get(parameter.name)
        if not isinstance(value, str) or not value.endswith(SCRIPTS) or not _is_file(value):
            continue
        if not words or parameter.name in EXAMPLES:  # --note train.py is valid
            raise _swallowed(parameter, value, "" if words else "no script or command given: ")


def check_unparsed(given: Sequence[str], parameters: Sequence[Parameter]) -> None:
    """Raise UserError if an option took the script as its value, in a command line that click cannot parse."""
    for flag, value in pairwise(given):
        parameter = next((each for each in parameters if flag in each.opts), None)
        if parameter is not None and parameter.name in EXAMPLES and value.endswith(SCRIPTS) and _is_file(value):
            raise _swallowed(parameter, value)


def _swallowed(parameter: Parameter, value: str, start: str = "") -> UserError:
    flag, example = parameter.flag, EXAMPLES.get(parameter.name, "VALUE")
    return UserError(
        f"{start}{flag} took the script '{value}' as its value",
        code="usage",
        hint=f"give the option a value, for example: `yurt run {flag} {example} {value}`",
    )


def _spaces_in_grid(words: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return a warning if the command is probably a value of --grid after a space. UserError if it is a number."""
    flag = "--grid" if options["grid"] else "--zip"
    given = options["grid"] or options["zipped"]
    if not given or not words or _is_file(words[0]):
        return []
    values = []
    for word in words:
        if word.endswith(SCRIPTS) and _is_file(word):
            break
        values.append(word.strip(","))
    last = given[-1].rstrip(",")
    joined = ",".join([last, *values])
    if _is_number(values[0]):
        raise UserError(
            f"'{words[0]}' is not a command; the values of {flag} are separated by commas, not spaces",
            code="usage",
            hint=f"use `{flag} {joined}`",
        )
    import shutil

    if len(values) == len(words) or "," in last or shutil.which(words[0]) is not None:
        return []
    return [f"the command is '{words[0]}'; if it is a value of {flag}, use commas: `{flag} {joined}`"]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _misplaced(words: Sequence[str], parameters: Sequence[Parameter]) -> list[str]:
    """Return a warning for each option of yurt after the script, unless the script itself contains its name."""
    start = _end_of_script(words)
    text = _text(words[start - 1]) if start else ""
    own = {flag for each in parameters for flag in each.opts if flag.startswith("--")} - EVERYONES
    found = dict.fromkeys(
        flag
        for at, word in enumerate(words)
        if (flag := word.partition("=")[0]) in own and at and (0 < start <= at or flag in ("--grid", "--zip"))
    )
    return [
        f"{flag} was passed to the script; yurt's own {flag} goes before the script"
        for flag in found
        if not re.search(rf"(?<![\w-]){flag}(?![\w-])", text)
    ]


def _end_of_script(words: Sequence[str]) -> int:
    """Return where the arguments of the script start; 0 if the command contains no script."""
    for at, word in enumerate(words):
        if _is_file(word) or (at > 1 and words[at - 1] == "-m" and "python" in words[at - 2]):
            return at + 1
    return 0


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL byte
        return False


def _text(script: str) -> str:
    try:
        with Path(script).open("rb") as file:
            return file.read(HEAD).decode(errors="replace")
    except OSError:
        return ""
