"""Reads what a pyproject.toml says about packages. No I/O."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from yurt.config.text import DEEPEST, toml


class Project(msgspec.Struct, frozen=True):
    """The parts of a pyproject.toml that concern packages. An absent part is empty."""

    name: str = ""
    python: str = ""
    dependencies: list[str] = []
    extras: dict[str, list[str]] = {}
    groups: list[str] = []
    builds: bool = False
    """Whether the project itself can be installed."""
    foreign: str = ""
    """The tool that the packages are declared for in a table of its own, such as poetry."""
    local: dict[str, str] = {}
    """The packages that uv takes from a folder, and the folder or the word `workspace`."""
    indexes: list[str] = []
    """The indexes of [tool.uv], as lines of a requirements file."""


@lru_cache(maxsize=4)
def parsed(text: str) -> dict[str, Any]:
    """Return the content of a file in TOML format, which nobody changes. ValueError with the reason, and the line if it
    is known."""
    tables = toml(text)
    level, depth = list[Any]([tables]), 0
    while level:  # a key with thousands of dots also makes tables in tables
        if (depth := depth + 1) > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        within = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for values in within for each in values if isinstance(each, dict | list)]
    return tables


def read(text: str) -> Project:
    """Return the parts of a pyproject.toml. ValueError with the reason, and the line if it is known."""
    tables = parsed(text)
    project, uv = _table(tables, "project"), _table(_table(tables, "tool"), "uv")
    extras = _table(project, "optional-dependencies")
    return Project(
        name=str(project.get("name", "")),
        python=str(project.get("requires-python", "")),
        dependencies=_strings(project, "dependencies"),
        extras={name: _strings(extras, name) for name in extras},
        groups=list(_table(tables, "dependency-groups")),
        builds="build-system" in tables,
        foreign=_foreign(_table(tables, "tool")),
        local=_local(_table(uv, "sources")),
        indexes=index_lines(uv),
    )


def relevant(text: str) -> dict[str, Any]:
    """Return the tables that decide which packages are installed. ValueError as in `read`."""
    tables = parsed(text)
    project = _table(tables, "project")
    names = ("requires-python", "dependencies", "optional-dependencies")
    return {
        "project": {name: project[name] for name in names if name in project},
        "dependency-groups": tables.get("dependency-groups", {}),
        "uv": _table(_table(tables, "tool"), "uv"),
    }


def all_dependencies(text: str) -> list[str]:
    """Return the requirements of a project with those of all extras and groups. ValueError as in `read`."""
    tables = parsed(text)
    project, groups = read(text), _table(tables, "dependency-groups")
    extras = (each for extra in project.extras.values() for each in extra)
    grouped = (each for group in groups.values() if isinstance(group, list) for each in group)
    return [each for each in (*project.dependencies, *extras, *grouped) if isinstance(each, str)]


def index_lines(uv: dict[str, Any]) -> list[str]:
    """Return the indexes in the settings of uv, as lines of a requirements file. Relative paths are left out."""
    lines: list[str] = []
    for each in uv.get("index", []):
        if isinstance(each, dict) and "://" in str(each.get("url", "")):
            option = "--index-url" if each.get("default") else "--extra-index-url"
            option = "--find-links" if each.get("format") == "flat" else option
            lines.append(f"{option} {each['url']}")
    if "index-url" in uv:
        lines.append(f"--index-url {uv['index-url']}")
    for name in ("extra-index-url", "find-links"):
        lines += [f"--{name} {each}" for each in uv.get(name, []) if "://" in str(each)]
    return lines


def _local(sources: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, source in sources.items():
        for each in source if isinstance(source, list) else [source]:
            if isinstance(each, dict) and ("path" in each or each.get("workspace")):
                found[name] = str(each.get("path", "workspace"))
    return found


def _foreign(tools: dict[str, Any]) -> str:
    poetry = _table(_table(tools, "poetry"), "dependencies")
    return "poetry" if poetry.keys() - {"python"} else ""


def _table(tables: dict[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name, {})
    if not isinstance(found, dict):
        raise ValueError(f"'{name}' is not a table")
    return found


def _strings(table: dict[str, Any], name: str) -> list[str]:
    found = table.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"'{name}' is not a list of strings")
    return found
