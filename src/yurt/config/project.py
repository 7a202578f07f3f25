"""Finds the user's project: the folder with yurt.yaml, or pyproject.toml with [tool.yurt], and its settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.config.contexts import own_lines
from yurt.config.text import text_of, toml
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.settings import TABLE
from yurt.model.stage import StageRequest

if TYPE_CHECKING:
    from yurt.config.services import NamedService
    from yurt.model.context_check import Fault

_OF_SITE = {row.key for row in TABLE if row.site}

KEYS = tuple(key for key in Context.__struct_fields__ if key not in _OF_SITE)
"""Keys of a project: its name, and the context keys that a project may set."""


EXPERIMENT_KEYS = ("project", "note", "description", "parameters", "grid", "zip")
"""Other keys of yurt.yaml: those of an experiment, read with `--config`; see yurt.config.experiment."""


MOST_VALUES = 150_000
"""Maximum number of values of a pyproject.toml with settings of yurt, about."""

LONGEST_LINE = 1000
"""Characters of a line in which a key is looked for."""

CONTEXTS = "contexts"
"""The key with the contexts that a project may use."""


def is_of_project(source: str) -> bool:
    """Whether the source of a setting is the file of a project, which another person may have written."""
    return source.startswith(("yurt.yaml:", "pyproject.toml:"))


class Project(msgspec.Struct, frozen=True):
    """A project folder and its settings."""

    folder: Path
    file: Path
    name: str
    settings: dict[str, Any]
    lines: dict[str, int]
    services: dict[str, NamedService] = {}
    stage: StageRequest = StageRequest()
    contexts: list[str] = []
    """The contexts that the project may use, for `yurt where` and `--context best`; empty for all."""


def working_folder() -> Path:
    """Return the working directory. UserError if somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UserError("the current folder no longer exists", code="usage", hint="go to another one: `cd`") from None


def find(start: Path | None = None) -> Project | None:
    """Return the project that contains a folder (default: the working directory), or None.

    The search stops at the home folder, unless it starts there. UserError lists every fault of the project file.
    """
    start = (start or working_folder()).absolute()
    for folder in (start, *start.parents):
        if folder != start and folder == Path.home():
            return None
        found = _in_yaml(folder / "yurt.yaml") or _in_toml(folder / "pyproject.toml")
        if found is not None:
            return found
    return None


def _in_yaml(file: Path) -> Project | None:
    if not file.is_file():
        return None
    import yaml

    from yurt.config import faults, yaml_text
    from yurt.model.context_check import Fault

    text = text_of(file)
    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        raise faults.error(file, [Fault((), problem)], {(): line}) from None
    found = [Fault(path, f"is set twice, in lines {one} and {two}; keep one") for path, one, two in twice]
    if isinstance(document, dict):
        document = {key: value for key, value in document.items() if key not in EXPERIMENT_KEYS}
    return _checked(file, document, (), lines, found)


def _in_toml(file: Path) -> Project | None:
    if not file.is_file() or "yurt" not in (text := text_of(file)):
        return None

    from yurt.config import faults
    from yurt.model.context_check import Fault

    try:
        document = toml(text, MOST_VALUES)
    except ValueError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = int(line[1]) if line else text.count("\n") + 1
        raise faults.error(file, [Fault((), f"is not valid TOML: {error}")], {(): where}) from None
    tool = document.get("tool")
    if not isinstance(tool, dict) or "yurt" not in tool:
        return None
    return _checked(file, tool["yurt"], ("tool", "yurt"), _toml_lines(text), [])


def _toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of every table and every key in the usual notation; tomllib does not report lines."""

    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate((each[:LONGEST_LINE] for each in text.split("\n")), 1):
        if head := re.match(r"\s*\[+\s*([\w.\"' -]+?)\s*\]", line):
            table = _toml_path(head[1])
            found.setdefault(table, number)
        elif key := re.match(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=", line):
            found.setdefault((*table, *_toml_path(key[1])), number)
    return found


def _toml_path(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))


def _checked(
    file: Path, body: Any, prefix: tuple[str, ...], lines: dict[tuple[str, ...], int], found: list[Fault]
) -> Project:
    from yurt.config import faults, services, stage
    from yurt.model.context_check import Fault, check_body

    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise faults.error(file, [Fault(prefix, "must be a mapping of settings", "partition: main")], lines)
    more = {services.KEY: services.EXAMPLE, stage.KEY: stage.EXAMPLE, CONTEXTS: "[alpha, beta]"}
    settings, wrong = check_body(body, KEYS, "a project", prefix, more)
    named, wrong_services = services.read(body.get(services.KEY), KEYS, (*prefix, services.KEY), lines)
    staged, wrong_stage = stage.read(body.get(stage.KEY), (*prefix, stage.KEY))
    allowed = body.get(CONTEXTS)
    if allowed is not None and not (isinstance(allowed, list) and all(isinstance(each, str) for each in allowed)):
        found = [
            *found,
            Fault((*prefix, CONTEXTS), "must be a list of names of contexts", f"{CONTEXTS}: [alpha, beta]"),
        ]
    found = [*wrong, *wrong_services, *wrong_stage, *found]
    if found:
        raise faults.error(file, found, lines)
    name = settings.pop("name", file.parent.name)
    own = {path[len(prefix) :]: line for path, line in lines.items() if path[: len(prefix)] == prefix}
    return Project(file.parent, file, name, settings, own_lines(body, own), named, staged, allowed or [])
