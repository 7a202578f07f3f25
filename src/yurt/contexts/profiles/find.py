"""Finds profiles: your own in the configuration folder, those of installed packages, and those that come with yurt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import msgspec

from yurt.config import paths
from yurt.config.text import text_of
from yurt.contexts.profiles import files
from yurt.errors import NotFoundError, UserError
from yurt.model.facts import Facts
from yurt.model.profile import Profile

GROUP = "yurt.sites"
"""The entry points of packages with profiles; each names a package that contains YAML files."""


class Known(msgspec.Struct, frozen=True):
    """A profile and where it comes from."""

    profile: Profile
    """What is known about the site."""
    origin: str
    """`yurt`, the path of a file, an address, or the name of a package."""


def folder() -> Path:
    """Return the folder of the user's own profiles. It may not exist."""
    return paths.config_home() / "sites"


def read(file: Path, origin: str = "") -> Known:
    """Return the profile of a file. UserError if it is invalid; NotFoundError if it does not exist."""
    if not file.exists():
        raise NotFoundError(f"profile '{file}' not found", code="not-found", hint="check the path")
    return Known(files.parse(text_of(file), file, base=bundled), origin or str(file))


def every() -> tuple[list[Known], list[str]]:
    """Return all profiles, those that take precedence first, and a warning for each file that is invalid."""
    found: dict[str, Known] = {}
    warnings = []
    for file, origin in _files():
        try:
            known = read(file, origin)
        except UserError as error:
            warnings.append(f"profile not used: {error.message}")
            continue
        found.setdefault(known.profile.name, known)
    return list(found.values()), warnings


def named(name: str) -> Known | None:
    """Return the profile with a name; None if there is none, or if its file is invalid."""
    ordered = sorted(_files(), key=lambda each: each[0].stem != name)
    for file, origin in ordered:
        try:
            known = read(file, origin)
        except UserError:
            continue
        if known.profile.name == name:
            return known
    return None


def of(host: str) -> Profile | None:
    """Return the profile of the site that a host belongs to, by its real name (`ssh -G`); None if it is unknown."""
    return next((each.profile for each in every()[0] if each.profile.has_host(host)), None)


def of_facts(host: str, facts: Facts | None) -> Known | None:
    """Return the profile of a site, by the name of its host, else by the facts of a probe; None if it is unknown."""
    known, _warnings = every()
    by_host = next((each for each in known if each.profile.has_host(host)), None)
    if by_host is not None or facts is None:
        return by_host
    fitting = [each for each in known if each.profile.fits(facts)]
    return max(fitting, key=lambda each: len(each.profile.marks) + bool(each.profile.clusters), default=None)


def _files() -> Iterator[tuple[Path, str]]:
    """Yield the files of profiles and their origins, those that take precedence first."""
    for file in _yaml_in(folder()):
        yield file, str(file)
    for name, place in _packages():
        for file in _yaml_in(place):
            yield file, f"package {name}"
    for file in _yaml_in(_data()):
        yield file, "yurt"


def _yaml_in(place: Path) -> list[Path]:
    return sorted(each for each in place.glob("*.yaml") if not each.name.startswith("."))


def _data() -> Path:
    return Path(str(resources("yurt.contexts.profiles") / "data"))


@cache
def _packages() -> list[tuple[str, Path]]:
    """Return the names and folders of installed packages that ship profiles. Does not import them."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda each: each.name):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            continue
        places = list(spec.submodule_search_locations or []) if spec is not None else []
        found += [(point.name, Path(each)) for each in places]
    return found


def bundled(name: str) -> dict[str, Any] | None:
    file = _data() / f"{name}.yaml"
    if not name.replace("-", "").isalnum() or not file.is_file():
        return None
    return files.content(text_of(file), file)[0]
