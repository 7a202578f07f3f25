"""Lets uv use the package indexes of the user's pip configuration, which uv itself does not read.

Settings are passed as environment variables, never as arguments: other users of the machine can read arguments, and
addresses of indexes can contain passwords.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from yurt.envs.declared import Declared

OWN = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_NO_INDEX")
"""Variables of uv about indexes. If one is set, or a uv.toml has such a setting, pip's settings do not apply."""

OWN_KEYS = ("index", "index-url", "extra-index-url", "find-links", "no-index")
SECTIONS = ("global", "install", "download", ":env:")
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


def variables(declared: Declared | None = None, *, pip: Settings | None = None) -> dict[str, str]:
    """Return the variables that give uv the settings of pip. Never overrides a setting of uv."""
    pip, environment = pip or of_pip(), os.environ
    found: dict[str, str] = {}
    if not any(environment.get(name) for name in OWN) and not any(map(_has_index, _uv_settings(declared))):
        found["UV_DEFAULT_INDEX"] = pip.index
        found["UV_INDEX"] = " ".join(pip.extra)
        found["UV_FIND_LINKS"] = ",".join(pip.find_links)
        found["UV_NO_INDEX"] = "1" if pip.no_index else ""
        # pip takes the best version of all indexes.
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match" if pip.extra else ""
    found["SSL_CERT_FILE"] = pip.cert
    found["UV_INSECURE_HOST"] = " ".join(pip.trusted)
    found["ALL_PROXY"] = pip.proxy
    return {name: value for name, value in found.items() if value and not environment.get(name)}


def of_pip() -> Settings:
    """Return the settings of pip, from its configuration files and its variables; empty ones without pip."""
    listed = _listed(_pip_config())
    settings: dict[str, str] = {}
    for section in SECTIONS:
        settings |= {name: value for (where, name), value in listed.items() if where == section}
    settings |= _from_environment(os.environ)

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
    """Return user name and password of each host, from the addresses of indexes."""
    from urllib.parse import unquote, urlsplit

    found: dict[str, tuple[str, str]] = {}
    for each in addresses:
        parts = urlsplit(each)
        if parts.username and parts.hostname:
            found[parts.netloc.rpartition("@")[2]] = (unquote(parts.username), unquote(parts.password or ""))
    return found


def _pip_config() -> str:
    """Return the output of `pip config list`; empty if pip is not installed."""
    import importlib.util
    import shutil
    import sys

    other = shutil.which("pip") or shutil.which("pip3")
    command = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [other] if other else []
    if not command:
        return ""
    try:
        done = subprocess.run(
            [*command, "config", "list"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _listed(output: str) -> dict[tuple[str, str], str]:
    """Read `pip config list`: lines such as global.index-url='https://...'."""
    found: dict[tuple[str, str], str] = {}
    for line in output.splitlines():
        if each := re.fullmatch(r"(:env:|\w+)\.([\w-]+)=(['\"].*['\"])", line):
            try:
                value = ast.literal_eval(each[3])
            except (ValueError, SyntaxError):
                continue
            found[each[1], each[2].replace("_", "-")] = str(value)
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    prefix = "PIP_"
    return {
        name.removeprefix(prefix).lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith(prefix) and value
    }


def _uv_settings(declared: Declared | None) -> Iterator[dict[str, Any]]:
    """Yield the settings in the files that uv reads: those of the system, the user and the project."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = [Path("/etc/uv/uv.toml"), home / "uv" / "uv.toml"]
    if named := os.environ.get("UV_CONFIG_FILE"):
        files = [Path(named)]
    for file in files:
        try:
            yield tomllib.loads(file.read_text())
        except (OSError, ValueError):
            continue
    if declared is not None and "uv.toml" in declared.files:
        yield tomllib.loads(declared.text("uv.toml"))


def _has_index(settings: dict[str, Any]) -> bool:
    pip = settings.get("pip")
    return any(key in settings or (isinstance(pip, dict) and key in pip) for key in OWN_KEYS)
