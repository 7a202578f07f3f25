"""Arguments and environment variables of a run, checked against the limits of Linux."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from yurt.backends.job import script
from yurt.errors import UserError
from yurt.model import params
from yurt.model.context import Context


class Given(msgspec.Struct, frozen=True):
    """The argument vector of a run, and its parameters."""

    words: list[str]
    extra: list[str]
    """The part of `words` that parameters add to what the user typed."""
    values: dict[str, Any]
    """Parameters as the user gave them."""
    typed: dict[str, Any]
    """The same parameters, with texts parsed as numbers and lists."""


def given(
    argv: Sequence[str],
    arguments: Sequence[str],
    known: Mapping[str, Any],
    sets: Sequence[Mapping[str, Any]],
    *,
    typed: bool = False,
    style: str = "",
) -> Given:
    """Insert parameters into a command: in place of {name}, else as arguments at its end.

    `arguments`: those after `--`. `typed`: the texts among `known` stay texts. `style`: as in a request.
    """
    typed_words = [*argv, *arguments]
    slots = params.slots(typed_words)
    check_slots(slots, sets)

    def hydra() -> bool:
        return _is_hydra(argv, style)

    extra = _extra(known, sets, slots, hydra)
    values = {**_in_arguments(arguments, known, sets, hydra), **known}
    texts = set(known) if typed else set[str]()
    parsed = {
        key: params.typed(each) if isinstance(each, str) and key not in texts else each for key, each in values.items()
    }
    words = [*(params.filled(word, known) for word in typed_words), *extra]
    return Given(words, list(extra), values, parsed)


def _in_arguments(
    arguments: Sequence[str],
    known: Mapping[str, Any],
    sets: Sequence[Mapping[str, Any]],
    is_hydra: Callable[[], bool],
) -> dict[str, str]:
    """Return the parameters among the arguments after `--`, with the values of names in braces.

    A parameter whose value differs between the tasks of a sweep is left out: the tasks have the parameter in braces.
    """
    found = params.read(arguments)
    if any("=" in word and not word.startswith("-") for word in arguments) and is_hydra():
        from yurt.lifecycle.plan import hydra

        found |= hydra.read(arguments)
    varying = {"task", *(key for each in sets for key in each)} if sets else set()
    return {key: params.filled(text, known) for key, text in found.items() if varying.isdisjoint(params.slots([text]))}


def _is_hydra(argv: Sequence[str], style: str) -> bool:
    """Return whether the command takes parameters as Hydra does, by the user's choice or by its script."""
    if style:
        return style == "hydra"
    from yurt.lifecycle.plan import hydra

    return hydra.is_application(argv)


def _extra(
    known: Mapping[str, Any],
    sets: Sequence[Mapping[str, Any]],
    slots: Collection[str],
    is_hydra: Callable[[], bool],
) -> list[str]:
    """Return the arguments for parameters that the command does not name in braces, in the style of the script."""
    own = named({key: each for key, each in known.items() if key not in slots})
    if not (own or sets) or not is_hydra():
        return params.words(own)
    from yurt.lifecycle.plan import hydra

    tasks = [{key: each for key, each in one.items() if key not in slots} for one in sets]
    return [*hydra.words(own), *hydra.slots(tasks)]


def variables(context: Context, values: Mapping[str, Any], by_flag: Collection[str] = ()) -> dict[str, bytes]:
    """Return the environment variables that a run gets from its context and its parameters.

    UserError if the name of one is not valid. `by_flag`: the names of those that `--var` sets.
    """
    try:
        own = params.variables(values)
    except ValueError as error:
        raise UserError(str(error), code="usage", hint="rename one of the parameters") from None
    for name in context.variables:
        if not name.isidentifier() or not name.isascii() or name in script.SHELLS_OWN:
            why = "is reserved by the shell" if name in script.SHELLS_OWN else "is not a valid variable name"
            where = "--var" if name in by_flag else "variables"
            raise UserError(f"{where}: '{params.shown(name)}' {why}", code="usage", hint="for example: `--var SEED=1`")
    return {name: os.fsencode(value) for name, value in {**own, **context.variables}.items()}


def check_slots(named: Collection[str], sets: Sequence[Mapping[str, Any]]) -> None:
    """Raise UserError if a command names in braces a parameter that only some tasks of a sweep have."""
    for name in named:
        have = sum(name in each for each in sets)
        if 0 < have < len(sets) and name != "task":
            at = next(number for number, each in enumerate(sets) if name not in each)
            number, count = at + 1, len(sets)
            raise UserError(
                f"the command uses {{{name}}}, but parameter set {number} of {count} has no '{name}'",
                code="usage",
                hint=f"give every set a value for '{name}', or remove `{{{name}}}` from the command",
            )


def check_size(words: Sequence[str], variables: Mapping[str, bytes]) -> None:
    most = params.ARGUMENT_LIMIT
    for word in words:
        argument = f"argument '{_start(word)}'"
        if (size := len(os.fsencode(word))) > most:
            raise UserError(
                f"{argument} is {size} bytes long; Linux allows at most {most}",
                code="usage",
                hint="write the value to a file in the project and pass the file name",
            )
        if "\0" in word:
            message = f"{argument} contains a NUL byte, which Linux does not allow"
            raise UserError(message, code="usage", hint="remove the NUL byte")
    for name, value in variables.items():
        if b"\0" in value:
            message = f"variable '{name}' contains a NUL byte, which Linux does not allow"
            raise UserError(message, code="usage", hint="remove the NUL byte")
        if (size := len(value)) + len(name) + 1 > most:
            raise UserError(
                f"variable '{name}' is {size} bytes long; Linux allows at most {most}, including the name",
                code="usage",
                hint="write the value to a file in the project",
            )
    total = sum(len(os.fsencode(word)) + 9 for word in words) + sum(len(each) + 40 for each in variables.values())
    most = params.TOTAL_LIMIT
    if total > most:
        raise UserError(
            f"the arguments and environment variables are {total} bytes in total; Linux allows about {most}",
            code="usage",
            hint="write large values to files in the project, and pass the file names",
        )


def _start(word: str) -> str:
    """Return the start of an argument, to identify it in a message."""
    text = params.shown(word).replace("\0", "\\0").replace("\n", "\\n")
    return text if len(text) <= 20 else f"{text[:20]}…"


def check_sets(
    sets: Sequence[Mapping[str, Any]], words: Sequence[str], own: Mapping[str, bytes], *, passed: bool
) -> None:
    """Raise UserError if the parameters of a task exceed the limits of Linux, or all together that of a sweep."""
    usual = sum(len(os.fsencode(word)) + 9 for word in words) + sum(len(each) + 40 for each in own.values())
    total = 0
    for number, each in enumerate(sets):
        text = msgspec.json.encode(each)
        total += len(text)
        # A small set cannot exceed any limit; only large ones are checked in detail.
        if len(text) > 30_000 or usual + 3 * len(text) > params.TOTAL_LIMIT or b"\\u0000" in text:
            variables = {name: os.fsencode(value) for name, value in params.variables(each).items()}
            try:
                check_size([*words, *(params.words(each) if passed else ())], {**own, **variables})
            except UserError as error:
                raise UserError(f"task {number}: {error.message}", code=error.code, hint=error.hint) from None
    if total > params.SETS_LIMIT:
        size, most, tasks = total >> 20, params.SETS_LIMIT >> 20, len(sets)
        raise UserError(
            f"the parameters of the {tasks} tasks are {size} MB; the limit for a sweep is {most} MB",
            code="usage",
            hint="write large values to files in the project, and pass the file names",
        )


def jsonable(value: Any) -> Any:
    if isinstance(value, str):
        return params.shown(value)
    if isinstance(value, Mapping):
        return {params.shown(key): jsonable(each) for key, each in value.items()}
    return [jsonable(each) for each in value] if isinstance(value, list | tuple) else value


def named(values: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in values:
        try:
            params.check_key(key)
        except ValueError as error:
            raise UserError(str(error), code="usage", hint="for example: `--param lr=0.1`") from None
    return values
