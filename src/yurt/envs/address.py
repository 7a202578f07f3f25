"""The address of an environment: equal for equal declarations, modules and platforms, on every machine. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from yurt.envs import pyproject, requirements
from yurt.envs.declared import Declared
from yurt.envs.target import Target
from yurt.model.digest import sha256_name


def address(
    declared: Declared, target: Target, modules: Sequence[str], *, wheelhouse: Sequence[str] = (), salt: str = ""
) -> str:
    """Return 16 hexadecimal digits. Comments in requirements files and line ends make no difference.

    The order of modules matters, as the order of loading them does. UserError for a broken declaration.
    """
    declared.check()
    parts: dict[str, Any] = {
        "kind": declared.kind,
        "files": {name: _content(declared, name) for name in declared.files},
        "extras": sorted(declared.extras),
        "groups": sorted(declared.groups),
        "modules": list(modules),
        "target": [target.python_version, target.machine, target.libc_family],
        "salt": salt,
    }
    if wheelhouse:
        parts["wheelhouse"] = list(wheelhouse)
    digest = sha256_name(msgspec.json.encode(parts, order="deterministic", enc_hook=str))
    return digest[:16]


def _content(declared: Declared, name: str) -> Any:
    """Return the part of a file that decides what is installed."""
    text = declared.text(name)
    if name == "pyproject.toml":
        return pyproject.relevant(text)
    if name.endswith((".toml", ".lock")) or (declared.kind == "conda" and name == declared.title):
        return text
    return requirements.canonical(text)
