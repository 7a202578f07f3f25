"""What yurt tells its users to type: verbs and options that exist, contexts that they have, words that yurt can parse.

In a hint, whatever the user can type is between backticks.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Collection, Iterator, Sequence

import click

from yurt.cli.app import every_command
from yurt.cli.root import root

TYPED = re.compile(r"`([^`]+)`")
CALL = re.compile(r"(sudo |\w+=\S+ )*yurt ")
ONE_CONTEXT = (
    "context show",
    "context edit",
    "context probe",
    "context use",
    "context remove",
    "login",
    "cluster",
    "import",
)
"""Verbs whose first argument is a context."""


@functools.cache
def commands() -> dict[str, click.Command]:
    """Return every command by the words that call it, without `yurt`."""
    return {words.removeprefix("yurt").strip(): command for words, command in every_command(root)}


def wrong(text: str, contexts: Collection[str] | None = None) -> list[str]:
    """Return what a hint names that does not exist. Upper-case words stand for values."""
    problems: list[str] = wrong_commands(text, contexts)
    for typed in TYPED.findall(text):
        if typed.startswith("--"):
            option = re.split(r"[ =]", typed)[0]
            if option.islower() and not any(option in options(command) for command in commands().values()):
                problems.append(f"no command has the option {option}")
    outside = TYPED.sub("", text)
    for verb in re.findall(r"\byurt ([a-z]+)\b", outside):
        if verb in commands():
            problems.append(f"'yurt {verb}' is not between backticks")
    problems += [f"{option} is not between backticks" for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", outside)]
    return [f"{problem}: {text}" for problem in problems]


def wrong_commands(text: str, contexts: Collection[str] | None = None) -> list[str]:
    """Return what is wrong with the commands of yurt in a text."""
    return [
        problem for typed in TYPED.findall(text) if CALL.match(typed) for problem in _wrong_command(typed, contexts)
    ]


def advice(out: str) -> list[str]:
    """Return the advice that `yurt why` printed, with each command between backticks."""
    typed = [f"`{command}`" for command in re.findall(r"^type:  (.*)$", out, re.MULTILINE)]
    return [*re.findall(r"^help:  (.*)$", out, re.MULTILINE), *typed]


def _wrong_command(typed: str, contexts: Collection[str] | None) -> Iterator[str]:
    words = shlex.split(typed.partition(" && ")[0])
    words = words[words.index("yurt") + 1 :]
    path: list[str] = []
    while words and words[0] in ("-v", "-q", "--json"):
        words.pop(0)
    while words and " ".join([*path, words[0]]) in commands():
        path.append(words.pop(0))
    if path == ["serve"] and words:
        path.append("run")  # `yurt serve NAME` and `yurt serve -- PROGRAM` are short for it
    name = " ".join(path)
    if not path and words and not words[0].startswith("-"):
        yield f"unknown verb {words[0]}"
        return
    if isinstance(commands()[name], click.Group) and words and words[0].islower() and words[0][0] != "-":
        yield f"yurt {name} has no verb {words[0]}"
        return
    known = options(commands()[name])
    yield from _refused(name, words)
    values: list[str] = []
    while words and words[0] != "--":
        word, _equals, value = words.pop(0).partition("=")
        if not word.startswith("-") or word == "-":
            values.append(word)
            if name == "run":
                break  # the rest belongs to the script
            continue
        given = value or "".join(words[:1])
        if word == "--context" and contexts is not None and given not in ("NAME", *contexts):
            yield f"no context {given}"
        elif known.get(word) and not value and words:
            words.pop(0)
    if contexts is not None and name in ONE_CONTEXT and values and values[0] not in contexts and values[0].islower():
        yield f"no context {values[0]}"


def _refused(name: str, words: Sequence[str]) -> Iterator[str]:
    """Yield what the parser of a command says about these words. A command alone may be only its name in a sentence."""
    given = [word for word in words if word != "…"]
    if not given or "--help" in given or isinstance(commands()[name], click.Group):
        return
    try:
        # With the settings of `yurt`: a command keeps the help option that it is first parsed with.
        commands()[name].make_context(name, [*given], **root.context_settings)
    except click.BadParameter as error:
        if isinstance(error, click.MissingParameter) or not any(word.isupper() for word in given):
            yield f"yurt {name}: {error.format_message()}"
    except click.UsageError as error:
        yield f"yurt {name}: {error.format_message()}"


def options(command: click.Command) -> dict[str, bool]:
    """Return a command's options, and whether each takes a value."""
    return {
        word: not parameter.is_flag
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for word in (*parameter.opts, *parameter.secondary_opts)
    }
