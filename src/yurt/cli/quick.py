"""Parses the usual forms of the frequent verbs without click.

Understands an argument or nothing: for a command line with anything it does not surely know, such as a misspelled
option, a missing value or --help, `parse` returns None, and click parses it and reports what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from yurt.cli import call
from yurt.cli.declare import NOT_EMPTY, DeclaredVerb, Parameter, global_options

VERBS = ("ps", "run", "show", "logs", "wait", "fetch", "cancel")
"""The verbs that are declared without click; each is a function in `yurt.lifecycle`, in the module of its name."""


class Parsed:
    """A command line: the verb, the values of its parameters, and the global options."""

    def __init__(self, verb: DeclaredVerb, values: dict[str, Any], app: call.App) -> None:
        self.verb, self.values, self.app = verb, values, app

    def invoke(self) -> object:
        """Call the verb and return what it returns."""
        with call.without_click(self.app):
            return call.invoke(self.app, lambda: self.verb.function(**self.values), selects_runs=self.verb.selects_runs)


class _UnknownError(Exception):
    """Click must parse this command line."""


def parse(arguments: Sequence[str]) -> Parsed | None:
    """Return what a command line means; None if click must parse it."""
    if not any(name in arguments[:8] for name in VERBS):
        return None
    app = call.App()
    try:
        _environment(app)
        values, rest = _options(global_options(), arguments, interspersed=False)
        if not rest or rest[0] not in VERBS or "--" in arguments[: len(arguments) - len(rest)]:
            return None
        _set(app, values)
        verb: DeclaredVerb = getattr(import_module(f"yurt.lifecycle.{rest[0]}"), f"{rest[0]}_command")
        options = [each for each in verb.parameters if each.is_option]
        values, words = _options(options, rest[1:], interspersed=verb.interspersed)
        _set(app, {each.name: values.pop(each.name) for each in verb.shared})
        arguments_of_verb = [each for each in verb.own if not each.is_option]
        if words and not arguments_of_verb:
            return None
        for each in arguments_of_verb:
            values[each.name] = _argument(each, words)
        return Parsed(verb, values, app)
    except _UnknownError:
        return None


def _environment(app: call.App) -> None:
    plain = os.environ.get("YURT_PLAIN", "")
    if plain not in ("", "1"):
        raise _UnknownError
    app.plain = bool(plain)


def _set(app: call.App, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value:
            setattr(app, name, value)


def _options(
    known: Sequence[Parameter], words: Sequence[str], *, interspersed: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of options by name, and the words that are not options."""
    flags = {flag: each for each in known for flag in each.opts}
    given: dict[str, list[Any]] = {}
    others: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            others += words[at:]
            break
        if not word.startswith("-") or word == "-":
            if not interspersed:
                others += words[at - 1 :]
                break
            others.append(word)
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = flags.get(flag)
        if option is None:
            raise _UnknownError
        if option.is_flag or option.more.get("count"):
            if equals:
                raise _UnknownError
            given.setdefault(option.name, []).append(True)
            continue
        if not equals:
            if at == len(words) or words[at].startswith("-"):
                raise _UnknownError
            value = words[at]
            at += 1
        if not value and option.name in NOT_EMPTY:
            raise _UnknownError
        given.setdefault(option.name, []).append(_read(option, value))
    return {each.name: _value(each, given.get(each.name, [])) for each in known}, others


def _read(parameter: Parameter, text: str) -> Any:
    kind = parameter.more.get("type")
    if kind is None:
        return text
    value = kind.read(text)
    if value is None:
        raise _UnknownError
    return value


def _value(option: Parameter, given: Sequence[Any]) -> Any:
    """Return the value of an option that was given this often."""
    if option.more.get("multiple"):
        return tuple(given)
    if option.more.get("count"):
        return len(given)
    if given:
        return given[-1]
    return option.more.get("default", False if option.is_flag else None)


def _argument(argument: Parameter, words: Sequence[str]) -> Any:
    """Return the value of the only argument of a verb."""
    if argument.more.get("nargs") == -1:
        if argument.more.get("required") and not words:
            raise _UnknownError
        return tuple(words)
    if len(words) != 1:
        raise _UnknownError
    return words[0]
