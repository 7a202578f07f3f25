"""The declaring files without what yurt does not install: local packages, and options that uv does not know. No I/O."""

from __future__ import annotations

import re
from typing import Any

from yurt.envs import conda_file, pyproject, requirements, uv_config
from yurt.envs.declared import Declared

IGNORED = ("--prefer-binary", "--use-feature", "--pre", "--trusted-host", "--no-binary", "--only-binary")
"""Options that uv rejects or ignores in a file, of which `yurt.envs.resolve` passes on two; and those that decide
whether uv runs the code of a package: a line `--no-binary NAME` is stronger than the option `--no-build`."""


def installable(declared: Declared) -> dict[str, bytes]:
    """Return the files by their path. Requirements files have no comments; all other files keep their text."""
    return {name: _cleaned(declared, name).encode() for name in declared.files}


def _cleaned(declared: Declared, name: str) -> str:
    text = declared.text(name)
    if name == "pyproject.toml":
        return _alone(text)
    if name.endswith(".toml") or name == "uv.lock":
        return text
    if declared.kind == "conda" and name == declared.title:
        return _conda(text) if declared.left_out else text
    return "".join(f"{_known(each)}\n" for each in requirements.read(text) if _is_kept(each))


def _alone(text: str) -> str:
    """Return a pyproject.toml without what uv would look for on this machine: members of a workspace, local packages
    and indexes in relative folders. Unchanged if there is none."""
    tables = pyproject.parsed(text)
    tool = tables.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(uv, dict):
        return text
    kept = uv_config.without_relative({name: value for name, value in uv.items() if name != "workspace"})
    local = pyproject.read(text).local
    if isinstance(sources := uv.get("sources"), dict) and local:
        kept["sources"] = {name: source for name, source in sources.items() if name not in local}
    return text if kept == uv else uv_config.written({**tables, "tool": {**tool, "uv": kept}})


def _is_kept(line: requirements.Line) -> bool:
    return line.kind != "local" and line.option not in IGNORED


def _known(line: requirements.Line) -> str:
    """Return a line for uv, which accepts a repository only as a requirement that is not editable."""
    editable = line.kind == "requirement" and line.option in ("-e", "--editable")
    return _with_name(line.value) if editable else line.text


def _with_name(address: str) -> str:
    """Return `NAME @ ADDRESS` for an address that ends in `#egg=NAME`."""
    found = re.fullmatch(r"([^#]+)#egg=([\w.\[\],-]+)", address)
    return f"{found[2]} @ {found[1]}" if found else address


def _conda(text: str) -> str:
    """Return a conda environment whose lines for pip have no local packages."""
    import yaml

    environment: dict[str, Any] = conda_file.read(text)
    for each in environment["dependencies"]:
        if isinstance(each, dict) and isinstance(each.get("pip"), list):
            each["pip"] = [line for line in each["pip"] if _is_kept(requirements.read(str(line))[0])]
    return yaml.safe_dump(environment, sort_keys=False)
