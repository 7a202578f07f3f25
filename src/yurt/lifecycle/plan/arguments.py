"""The words and variables a run gets, checked against what Linux lets through."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from yurt.backends.job import script
from yurt.errors import UserError
from yurt.lifecycle.plan.request import Request
from yurt.model import params
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.sites.folders import expand


class Given(msgspec.Struct, frozen=True):
    """The words of a run's command, and its parameters."""

    words: list[str]
    extra: list[str]
    """Those of the words that parameters add to what the user typed."""
    values: dict[str, Any]
    """Parameters as they were given."""
    typed: dict[str, Any]
    """The same as the numbers and lists that texts stand for."""


def given(argv: Sequence[str], request: Request) -> Given:
    """Put parameters into a command: where it names them in braces, else as arguments behind it."""
    typed_words = [*argv, *request.arguments]
    slots = params.slots(typed_words)
    check_slots(slots, request.sets)
    extra = params.words(named({key: each for key, each in request.params.items() if key not in slots}))
    values = {**params.read(request.arguments), **request.params}
    known = request.params if request.typed else {}
    typed = {
        key: params.typed(each) if isinstance(each, str) and key not in known else each for key, each in values.items()
    }
    words = [*(params.filled(word, request.params) for word in typed_words), *extra]
    return Given(words, list(extra), values, typed)


def variables(context: Context, facts: Facts | None, values: Mapping[str, Any]) -> dict[str, bytes]:
    """The variables of a run that its context and its parameters give it."""
    try:
        own = params.variables(values)
    except ValueError as error:
        raise UserError(str(error), code="usage", hint="rename one of them") from None
    scratch = ""
    if context.scratch_dir:
        below = context.scratch_dir if context.scratch_dir[0] in "/~$" else f"$SCRATCH/{context.scratch_dir}"
        scratch = expand(context, facts, below, "scratch_dir")
    if scratch:
        own = {"YURT_SCRATCH": scratch, **own}
    for name in context.variables:
        if not name.isidentifier() or not name.isascii() or name in script.SHELLS_OWN:
            why = "belongs to the shell" if name in script.SHELLS_OWN else "is no name for a variable"
            raise UserError(f"'{params.shown(name)}' {why}", code="usage", hint="for example --var SEED=1")
    return {name: os.fsencode(value) for name, value in {**own, **context.variables}.items()}


def check_slots(named: Collection[str], sets: Sequence[Mapping[str, Any]]) -> None:
    """UserError where a command names in braces what only some tasks of a sweep have."""
    for name in named:
        have = sum(name in each for each in sets)
        if 0 < have < len(sets) and name != "task":
            at = next(number for number, each in enumerate(sets) if name not in each)
            raise UserError(
                f"the command names {{{name}}}, and set {at + 1} of {len(sets)} has no such parameter",
                code="usage",
                hint=f"give it to all, or leave {{{name}}} out: it is an argument then where there is one",
            )


def check_size(words: Sequence[str], variables: Mapping[str, bytes]) -> None:
    for word in words:
        if len(os.fsencode(word)) > params.ARGUMENT_LIMIT:
            raise UserError(
                f"one argument has {len(os.fsencode(word))} bytes, and Linux passes at most {params.ARGUMENT_LIMIT}",
                code="usage",
                hint="put it into a file of the project and pass the file's name",
            )
        if "\0" in word:
            raise UserError("an argument holds a NUL byte, which no program can be given", code="usage")
    for name, value in variables.items():
        if len(value) + len(name) + 1 > params.ARGUMENT_LIMIT or b"\0" in value:
            raise UserError(
                f"the variable {name} has {len(value)} bytes or a NUL among them; Linux passes at most "
                f"{params.ARGUMENT_LIMIT} bytes and no NUL",
                code="usage",
                hint="put it into a file of the project",
            )
    total = sum(len(os.fsencode(word)) + 9 for word in words) + sum(len(each) + 40 for each in variables.values())
    if total > params.TOTAL_LIMIT:
        raise UserError(
            f"arguments and variables have {total} bytes together, and Linux passes about {params.TOTAL_LIMIT}",
            code="usage",
            hint="put them into a file of the project",
        )


def check_sets(
    sets: Sequence[Mapping[str, Any]], words: Sequence[str], own: Mapping[str, bytes], *, passed: bool
) -> None:
    """UserError where a task of a sweep would get more than Linux lets through, or all of them are too much."""
    usual = sum(len(os.fsencode(word)) + 9 for word in words) + sum(len(each) + 40 for each in own.values())
    total = 0
    for number, each in enumerate(sets):
        text = msgspec.json.encode(each)
        total += len(text)
        # What is small cannot be too large in any part; only the others are looked at one by one.
        if len(text) > 30_000 or usual + 3 * len(text) > params.TOTAL_LIMIT or b"\\u0000" in text:
            variables = {name: os.fsencode(value) for name, value in params.variables(each).items()}
            try:
                check_size([*words, *(params.words(each) if passed else ())], {**own, **variables})
            except UserError as error:
                raise UserError(f"task {number}: {error.message}", code=error.code, hint=error.hint) from None
    if total > params.SETS_LIMIT:
        raise UserError(
            f"the parameters of these {len(sets)} tasks have {total >> 20} MB together, and a sweep carries at most "
            f"{params.SETS_LIMIT >> 20} MB",
            code="usage",
            hint="put what is large into files of the project, and give their names",
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
            raise UserError(str(error), code="usage", hint="for example --param lr=0.1") from None
    return values
