"""The settings that uv gets: those of the user, and those of the project that only choose packages. No other is read.

uv itself would take the settings of the project, and of each folder above the working directory, which may be another
user's: a cache folder, programs to run, hosts without certificates. Passwords are in the file and not in variables,
which uv expands in the addresses that a package names.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from yurt.envs import pyproject, requirements
from yurt.envs.declared import Declared

OF_PROJECT = {
    "index",
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "index-strategy",
    "exclude-newer",
    "exclude-newer-package",
    "prerelease",
    "resolution",
    "fork-strategy",
    "constraint-dependencies",
    "override-dependencies",
    "exclude-dependencies",
    "dependency-metadata",
    "pip",
}
"""The settings that a project decides. They name packages, versions and indexes, and yurt shows their addresses."""

OF_PROJECT_FOR_PIP = OF_PROJECT | {"torch-backend", "extra", "all-extras"}
"""Those in the table `pip`, which are for `uv pip` only."""


def text(declared: Declared | None, variables: Mapping[str, str]) -> str:
    """Return a uv.toml. `variables` are those of the user, and those that stand for the settings of pip."""
    own: dict[str, Any] = {}
    for settings in of_user():
        own = _combined(own, settings)
    merged = _combined(of_project(declared), own) if declared is not None else own
    origins = {origin(str(each.get("url", ""))) for each in _with_variables(own, variables).get("index", [])}
    found = _with_variables(merged, variables)
    if "index" in found:
        found["index"] = [_with_login(each, variables, origins) for each in found["index"]]
    return written(found)


def of_user() -> Iterator[dict[str, Any]]:
    """Yield the settings in the files of the user and the system, the strongest first."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = [home / "uv" / "uv.toml", Path("/etc/uv/uv.toml")]
    if named := os.environ.get("UV_CONFIG_FILE"):
        files = [Path(named)]
    elif os.environ.get("UV_NO_CONFIG", "").lower() in ("1", "true", "yes", "on"):
        files = []
    for file in files:
        try:
            settings = tomllib.loads(file.read_text())
        except (OSError, ValueError):
            continue
        yield _absolute(settings, file.absolute().parent)


def of_project(declared: Declared) -> dict[str, Any]:
    """Return the settings of a project that it may decide. As in uv, those of its uv.toml replace [tool.uv]."""
    settings: dict[str, Any] = {}
    if "uv.toml" in declared.files:
        settings = pyproject.parsed(declared.text("uv.toml"))
    elif "pyproject.toml" in declared.files:
        tool = pyproject.parsed(declared.text("pyproject.toml")).get("tool", {})
        settings = tool.get("uv", {}) if isinstance(tool, dict) else {}
    return _allowed(settings) if isinstance(settings, dict) else {}


def _allowed(settings: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in settings.items() if name in OF_PROJECT}
    if isinstance(pip := found.pop("pip", None), dict):
        found["pip"] = {name: value for name, value in pip.items() if name in OF_PROJECT_FOR_PIP}
    for name in ("constraint-dependencies", "override-dependencies"):
        if isinstance(found.get(name), list):
            found[name] = [each for each in found[name] if not (isinstance(each, str) and requirements.is_local(each))]
    return without_relative(found)


def without_relative(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a project without indexes in relative folders.

    uv would take them relative to the copy of the file that it gets.
    """
    return _with_places(settings, lambda place: place if re.match(r"\s*[\w+.-]+:|/", place) else "")


def places(settings: dict[str, Any]) -> Iterator[str]:
    """Yield the addresses and folders of all indexes in settings."""
    found: list[str] = []

    def noted(place: str) -> str:
        found.append(place)
        return place

    _with_places(settings, noted)
    yield from found


def _absolute(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return settings whose folders are absolute; uv takes them relative to the file."""
    return _with_places(settings, lambda place: place if "://" in place else str(folder / Path(place).expanduser()))


def _with_places(settings: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return settings with each address or folder of an index replaced; an index without one is left out."""

    def changed(place: Any) -> Any:
        return change(place) if isinstance(place, str) else place

    found = dict(settings)
    for name, value in settings.items():
        if name in ("find-links", "extra-index-url") and isinstance(value, list):
            found[name] = [made for each in value if (made := changed(each)) != ""]
        elif name == "index-url":
            found[name] = changed(value)
        elif name == "index" and isinstance(value, list):
            made_of = [each | {"url": changed(each.get("url"))} for each in value if isinstance(each, dict)]
            found[name] = [each for each in made_of if each["url"] != ""]
        elif name == "pip" and isinstance(value, dict):
            found[name] = _with_places(value, change)
    return {name: value for name, value in found.items() if (name, value) != ("index-url", "")}


def _combined(strong: dict[str, Any], weak: dict[str, Any]) -> dict[str, Any]:
    """Return settings of two files, as uv combines them: lists are joined, the stronger of two values is used."""
    found = weak | strong
    for name in strong.keys() & weak.keys():
        one, other = strong[name], weak[name]
        if isinstance(one, list) and isinstance(other, list):
            found[name] = [*one, *other]
        elif isinstance(one, dict) and isinstance(other, dict):
            found[name] = _combined(one, other)
    return found


def _with_variables(settings: dict[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings with the indexes in variables, which are stronger than those in files."""
    found, listed = dict(settings), settings.get("index", [])
    indexes = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    usual = variables.get("UV_DEFAULT_INDEX") or variables.get("UV_INDEX_URL")
    if usual:
        indexes = [each for each in indexes if not each.get("default")]
        found.pop("index-url", None)
        if isinstance(found.get("pip"), dict):
            found["pip"] = {name: value for name, value in found["pip"].items() if name != "index-url"}
    more = f"{variables.get('UV_INDEX', '')} {variables.get('UV_EXTRA_INDEX_URL', '')}".split()
    indexes = [*map(_index, more), *indexes, *([_index(usual) | {"default": True}] if usual else [])]
    if indexes:
        found["index"] = indexes
    if links := [each.strip() for each in variables.get("UV_FIND_LINKS", "").split(",") if each.strip()]:
        given = found.get("find-links", [])
        found["find-links"] = [*links, *(given if isinstance(given, list) else [])]
    return found


def _index(word: str) -> dict[str, Any]:
    """Return the index in a word such as `name=https://…`, with or without a name."""
    named = re.fullmatch(r"([\w.-]+)=(.*)", word)
    place = named[2] if named else word
    url = place if "://" in place else str(Path(place).expanduser().absolute())
    return {"name": named[1], "url": url} if named else {"url": url}


def origin(address: str) -> str:
    """Return scheme, host and port of an address: a password for https is not for http on the same host.

    Empty for an invalid address, which uv reports.
    """
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": "80", "https": "443"}.get(parts.scheme, "")
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _with_login(index: dict[str, Any], variables: Mapping[str, str], origins: set[str]) -> dict[str, Any]:
    """Return an index with the user name and the password that the user's variables have for its name.

    A project can give any index this name, so it gets the login only at the origin of an index of the user.
    """
    name = re.sub(r"[^A-Z0-9]", "_", str(index.get("name", "")).upper())
    user, password = (variables.get(f"UV_INDEX_{name}_{each}", "") for each in ("USERNAME", "PASSWORD"))
    address = str(index.get("url", ""))
    if not name or not (user or password) or origin(address) not in origins - {""}:
        return index
    parts = urlsplit(address)
    if not parts.hostname or parts.username:
        return index
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return index | {"url": urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))}


def written(tables: dict[str, Any]) -> str:
    """Return tables as a file in TOML format."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in tables.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Return a value of a TOML file as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)
