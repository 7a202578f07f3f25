"""Generates the reference page of the Python API from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import yurt
from yurt.api.executor import YurtExecutor
from yurt.api.future import Call
from yurt.model.settings import TABLE
from yurt.model.settings_row import Row
from yurt.node.checkpoints import Checkpointing

INTERNAL = ("awaited", "begin")
"""Members that only yurt itself uses."""

PARTS: list[tuple[str, str, list[tuple[str, Callable[..., Any]]], list[tuple[str, type]]]] = [
    (
        "Starting runs",
        "Use these functions in scripts and notebooks on your own machine. Errors are instances of "
        "`yurt.errors.YurtError` with the same `code`, `message` and `hint` as [on the command line](errors.md).",
        [
            ("yurt.executor", yurt.executor),
            ("yurt.run", yurt.run),
            ("yurt.runs", yurt.runs),
            ("yurt.get", yurt.get),
        ],
        [
            ("Executor", YurtExecutor),
            ("Future", Call),
            ("yurt.Run", yurt.Run),
            ("yurt.Runs", yurt.Runs),
        ],
    ),
    (
        "Inside a run",
        "Use these functions in the script of a run. yurt does not have to be installed on the site.",
        [("yurt.log", yurt.log), ("yurt.params", yurt.params), ("yurt.checkpointing", yurt.checkpointing)],
        [("Checkpoints", Checkpointing)],
    ),
]


def page() -> str:
    """Return the page as Markdown."""
    parts = ["# Python\n"]
    for title, about, functions, classes in PARTS:
        parts.append(f"## {title}\n\n{about}\n")
        parts += [f"### {name}\n\n{_code(name, each)}\n\n{_text(each)}\n" for name, each in functions]
        parts += [f"### {name}\n\n{_text(each)}\n\n{_members(each)}" for name, each in classes]
    parts.append(_options())
    return "\n".join(parts)


def _code(name: str, function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    parameters = [_parameter(each) for each in found.parameters.values()]
    star = next((at for at, each in enumerate(found.parameters.values()) if each.kind is each.KEYWORD_ONLY), None)
    if star is not None:
        parameters.insert(star, "*")
    line = f"{name}({', '.join(parameters)})"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + ")"
    return f"```text\n{line}\n```"


def _parameter(parameter: inspect.Parameter) -> str:
    """Return a parameter with its type as written in the code."""
    if parameter.name == "options":
        return "**options"
    return re.sub(r": '([^']*)'", r": \1", str(parameter)).replace("typing.", "")


def _text(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _members(kind: type) -> str:
    rows = ["| | |\n|---|---|"]
    for name, each in vars(kind).items():
        if name.startswith("_") or name in INTERNAL or not (callable(each) or isinstance(each, property)):
            continue
        about = " ".join(_text(each).split())
        shown = f"`{name}`" if isinstance(each, property) else f"`{name}{_arguments(each)}`"
        rows.append(f"| {shown} | {about} |")
    return "\n".join(rows) + "\n"


def _arguments(function: Callable[..., Any]) -> str:
    """Return a signature without types, which would not fit into a table."""
    given = inspect.signature(function).parameters.values()
    parameters = [str(each.replace(annotation=each.empty)) for each in given if each.name != "self"]
    star = next((at for at, each in enumerate(given) if each.kind is each.KEYWORD_ONLY), 0)
    if star and not any(each.kind is each.VAR_POSITIONAL for each in given):
        parameters.insert(star - 1, "*")
    return f"({', '.join(parameters)})".replace("|", "\\|")


def _options() -> str:
    rows = [row for row in TABLE if row.option]
    same = ", ".join(f"`{row.option}`" for row in rows if _named(row))
    others = "".join(
        f"| `{row.option}{'=False' if row.flag == f'--no-{row.option}' else ''}` | `{row.flag}` |\n"
        for row in rows
        if not _named(row)
    )
    return (
        "## Options\n\n`yurt.executor` and `yurt.run` accept the following options of [`yurt run`](cli.md#yurt-run). "
        f"These have the same name, with `_` in place of `-`: {same}. These have different names:\n\n"
        f"| Python | command line |\n|---|---|\n{others}\n"
        f"{_of_form('mapping', 'options')} are mappings; {_of_form('list')} are lists.\n"
    )


def _named(row: Row) -> bool:
    """Whether the option has the same name on the command line."""
    return f"--{row.option.replace('_', '-')}" in row.cli.split()


def _of_form(*forms: str) -> str:
    *others, last = [f"`{row.option}`" for row in TABLE if row.option and row.form in forms]
    return f"{', '.join(others)} and {last}"
