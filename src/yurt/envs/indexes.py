"""Lets uv use the package indexes of the user's pip configuration, which uv itself does not read.

Settings are passed as environment variables, never as arguments: other users of the machine can read arguments, and
addresses of indexes can contain passwords.
"""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from yurt.envs import uv_config
from yurt.envs.declared import Declared

OWN = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
"""Variables of uv about indexes. If one is set, or a uv.toml has such a setting, pip's settings do not apply."""

OWN_KEYS = ("index", "index-url", "extra-index-url", "find-links", "no-index")
SECTIONS = ("global", "install", "download")
"""Sections of pip's configuration, from the weakest to the strongest."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of pip about indexes and the network."""

    index: str = ""
    extra: list[str] = []
    find_links: list[str] = []
    no_index: bool = False
    cert: str = ""
    trusted: list[str] = []
    proxy: str = ""


class ForUv(msgspec.Struct, frozen=True):
    """The settings of pip as variables and options of uv."""

    variables: dict[str, str]
    options: list[str]


def for_uv(declared: Declared | None = None, *, pip: Settings | None = None) -> ForUv:
    """Return the settings of pip for uv. They never override a setting of uv."""
    pip, environment = pip or of_pip(), os.environ
    found = {"SSL_CERT_FILE": pip.cert, "UV_INSECURE_HOST": " ".join(pip.trusted), "ALL_PROXY": pip.proxy}
    apply = not any(environment.get(name) for name in OWN) and not any(map(_has_index, _uv_settings(declared)))
    if apply:
        found["UV_DEFAULT_INDEX"] = pip.index
        found["UV_INDEX"] = " ".join(pip.extra)
        found["UV_FIND_LINKS"] = ",".join(pip.find_links)
        # pip takes the best version of all indexes.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match" if pip.extra else ""
    variables = {name: value for name, value in found.items() if value and not environment.get(name)}
    return ForUv(variables, ["--no-index"] if apply and pip.no_index else [])


def of_pip() -> Settings:
    """Return the settings of pip, from its configuration files and its variables."""
    parser = configparser.RawConfigParser(strict=False)
    for file in config_files():
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself reports it
    sections = [dict(parser.items(name)) for name in SECTIONS if parser.has_section(name)]
    variables = {name[4:]: value for name, value in os.environ.items() if name.startswith("PIP_") and value}
    settings = {
        name.lower().replace("_", "-").removeprefix("--"): value
        for section in (*sections, variables)
        for name, value in section.items()
    }

    def words(name: str) -> list[str]:
        return settings.get(name, "").split()

    return Settings(
        index=settings.get("index-url", "").strip(),
        extra=words("extra-index-url"),
        find_links=words("find-links"),
        no_index=settings.get("no-index", "").lower() in ("1", "true", "yes", "on"),
        cert=settings.get("cert", "").strip(),
        trusted=words("trusted-host"),
        proxy=settings.get("proxy", "").strip(),
    )


def passwords(addresses: list[str]) -> dict[str, tuple[str, str]]:
    """Return user name and password by origin, from the addresses of indexes."""

    found: dict[str, tuple[str, str]] = {}
    for each in addresses:
        parts = urlsplit(each)
        if parts.username and parts.hostname:
            found[uv_config.origin(each)] = (unquote(parts.username), unquote(parts.password or ""))
    return found


def config_files() -> list[Path]:
    """Return the places of pip's configuration files, from the weakest to the strongest, as pip documents them.

    Running `pip config list` would take half a second, and yurt may be installed without pip.
    """
    own = os.environ.get("PIP_CONFIG_FILE")
    if own == os.devnull:
        return []
    home, name = Path.home(), "pip.conf"
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [Path(each) for each in os.environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if each]
    files = [*(each / "pip" / name for each in reversed(shared)), Path("/etc") / name]
    user = [home / ".pip" / name, config / "pip" / name]
    if sys.platform == "darwin":
        files = [Path("/Library/Application Support/pip") / name]
        support = home / "Library" / "Application Support" / "pip"
        user[-1:] = [support / name] if support.is_dir() else user[-1:]
    # A file that the user names replaces the user's files, and is stronger than the others.
    named = Path(own) if own else None
    files += [] if named and named.exists() else user
    return [*files, Path(sys.prefix) / name, *([named] if named else [])]


def _uv_settings(declared: Declared | None) -> Iterator[dict[str, Any]]:
    """Yield the settings in the files of uv: those of the system, the user and the project."""
    yield from uv_config.of_user()
    if declared is not None and "uv.toml" in declared.files:
        yield uv_config.of_project(declared)


def _has_index(settings: dict[str, Any]) -> bool:
    pip = settings.get("pip")
    return any(key in settings or (isinstance(pip, dict) and key in pip) for key in OWN_KEYS)
