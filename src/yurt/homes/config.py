"""homes.yaml: which homes are kept in sync, around which hub, with which profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from yurt.config import paths
from yurt.config.parse_cache import cached
from yurt.model.context import LOCAL
from yurt.model.resources import parse_seconds

HEADER = "# Homes that yurt keeps in sync. Change them with `yurt home sync`, or edit this file.\n"


class PlaceSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """The settings of one place; all have defaults."""

    root: str = ""
    """The folder to sync, absolute or below the home; empty: the home itself."""
    address: str = ""
    """How the hub reaches this place with ssh, if the hub is a context; empty: the address of the context."""
    unison: str = ""
    """The Unison program of this place; empty: the first of PATH, ~/.local/bin and yurt's own copy that exists."""


class Homes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of homes.yaml."""

    places: dict[str, PlaceSettings] = {}
    """The contexts, and `local` if it is a place although the hub is a context."""
    hub: str = LOCAL.name
    folder: str = "~/yurt-home"
    """The root of this machine."""
    profile: str = "yurt-homes"
    interval: str = ""
    """The time between two syncs by `yurt agent`; empty: it starts none by itself."""
    keep: str = "90d"
    """How long backups are kept."""
    unreadable: str = "hold"
    """What to do about files that cannot be read: `hold` jobs that wait for the sync, or `skip` the files."""
    unison_writes: str = "home"
    """Where the Unison of this machine may write: `home`, or `anywhere`, as its profile may ask for."""
    backups: str = ""
    """The folder for backups on every place, absolute or below the home; empty: `backup` in Unison's folder."""

    @property
    def names(self) -> list[str]:
        """The names of all places, the hub first."""
        return [self.hub, *(name for name in self.places if name != self.hub)]

    @property
    def keep_seconds(self) -> int:
        return parse_seconds(self.keep)

    @property
    def interval_seconds(self) -> int | None:
        return parse_seconds(self.interval) if self.interval else None

    def settings(self, name: str) -> PlaceSettings:
        """Return the settings of a place."""
        return self.places.get(name, PlaceSettings())


def default_file() -> Path:
    return paths.config_home() / "homes.yaml"


def load() -> Homes | None:
    """Return the content of homes.yaml; None if there is no such file. UserError lists every fault with its line."""
    from yurt.config.text import text_of

    file = default_file()
    text = text_of(file, trusted=True)
    return cached("homes", text, Homes, lambda: parse(text, file)) if text.strip() else None


def save(homes: Homes) -> None:
    """Replace homes.yaml. UserError if the configuration folder is not writable."""
    from yurt.config import yaml_text
    from yurt.errors import UserError

    body: dict[str, Any] = {"hub": homes.hub, "places": {}, **msgspec.to_builtins(homes)}
    body["places"] = {name: body["places"].get(name, {}) for name in homes.places}
    try:
        paths.write_private(default_file(), (HEADER + yaml_text.dump(body)).encode())
    except OSError as error:
        raise UserError(f"cannot write {default_file()}: {error.strerror}", code="config-unwritable") from None


def parse(text: str, file: Path) -> Homes:
    """Return the homes of a text. UserError lists every fault with its line."""
    import yaml

    from yurt.config import faults, yaml_text
    from yurt.homes.config_check import faults_of
    from yurt.model.context_check import Fault

    try:
        document, lines, twice = yaml_text.parse_with_lines(text)
    except yaml.YAMLError as error:
        line, problem = yaml_text.syntax_fault(text, error)
        raise faults.error(file, [Fault((), problem)], {(): line}) from None
    found = [Fault(path, f"is set twice, in lines {one} and {two}; keep one") for path, one, two in twice]
    found += faults_of(document, Homes.__struct_fields__, PlaceSettings.__struct_fields__)
    if found:
        raise faults.error(file, found, lines)
    body = {key: value for key, value in document.items() if value is not None}
    body["places"] = {name: _without_none(each) for name, each in (body.get("places") or {}).items()}
    return msgspec.convert(body, Homes)


def _without_none(body: dict[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (body or {}).items() if value is not None}
