"""The addresses that a project brings for its packages, and which of them are not the user's. No network.

An index that is not the user's can offer a package under the name of any other, so the user confirms each once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from yurt.envs import conda_file, indexes, pyproject, requirements, uv_config, uv_lock, uv_program
from yurt.envs.declared import Declared, pip_lines

SCHEME = r"(?:https?|ssh|git|ftp|svn|bzr|hg)(?:\+[a-z]+)?:"
DIRECT = re.compile(rf"(?:^|\s|@\s*)((?:[a-z0-9.-]+\+)?{SCHEME}[^\s#]+)", re.IGNORECASE)
SCP = re.compile(r"(?:^|@\s*)((?:git\+)?[\w.-]+@[\w.-]+:[^\s;#]+)")
HOST = re.compile(r"[a-z0-9.-]+(?::\d+)?|\[[0-9a-f:.]+\](?::\d+)?")
IN_BRACKETS = re.compile(rf"[\[=,'\"]\s*({SCHEME}[^\s#'\",\]]+)", re.IGNORECASE)
"""An address in a requirement for conda, such as `one[url=https://...]`."""
CONTROL = "".join(map(chr, range(0x21)))
"""Characters that uv ignores around an address."""

PYTORCH = "pytorch.org"
"""uv itself takes PyTorch from there, with --torch-backend."""


def foreign(declared: Declared) -> list[str]:
    """Return the addresses that a project brings, each once, without those of the user, of uv and of PyTorch."""
    found = list(dict.fromkeys(plain(each) for each in _of(declared)))
    if not found:
        return []
    own = [plain(each) for each in _of_user()]
    rest = [each for each in found if not _is_pytorch(each) and not any(_below(each, other) for other in own)]
    if not rest:
        return []
    usual = [plain(each) for each in _usual()]  # takes a call of uv
    return [each for each in rest if not any(_below(each, other) for other in usual)]


def plain(address: str) -> str:
    """Return an address without a login, a version and a fragment; of a file, the folder that it is in.

    As uv does, ignores control characters and takes a backslash for a slash: the host shown is the host contacted.
    """
    address = re.sub(r"^(?:git|hg|svn|bzr)\+", "", re.sub(r"[\x00-\x20]", "", address).replace("\\", "/"))
    if not re.match(SCHEME, address, re.IGNORECASE):
        return address.partition("#")[0]
    try:
        parts = urlsplit(re.sub(r"^([^:]+):/*", r"\1://", address))
    except ValueError:
        return address
    path = re.sub(r"(?<=.)@[^/@]*$", "", parts.path)
    if requirements.ARCHIVE.search(path):
        path = path.rpartition("/")[0]
    return f"{parts.scheme.lower()}://{_in_ascii(parts.netloc.rpartition('@')[2].lower())}{path.rstrip('/')}"


def _in_ascii(host: str) -> str:
    """Return a host whose letters cannot be mistaken for others."""
    return ".".join(each if each.isascii() else f"xn--{each.encode('punycode').decode()}" for each in host.split("."))


def on_this_machine(declared: Declared) -> list[Path]:
    """Return the folders of this machine that a project names as package indexes, which uv reads."""
    found: list[str] = []
    for name in declared.files:
        if name == "pyproject.toml":  # for the indexes that it names as sources, uv reads the file itself
            found += uv_config.places(pyproject.relevant(declared.text(name))["uv"])
        elif name == "uv.toml":
            found += uv_config.places(uv_config.of_project(declared))
        elif declared.kind == "requirements" and not name.endswith((".toml", ".lock")):
            found += [each.value for each in requirements.read(declared.text(name)) if each.kind == "index"]
    return list(dict.fromkeys(path for each in found for path in _paths(each)))


def _paths(place: str) -> Iterator[Path]:
    """Yield the path of a folder or of an address with `file:`; nothing for another address.

    uv takes `..` away before it follows links, which may be another folder, so that is yielded, too.
    """
    url = re.sub(r"[\t\n\r]", "", place.strip(CONTROL))
    if found := re.match(r"file:/*(?:(?<=//)localhost(?=/))?([^?#]*)", url.replace("\\", "/"), re.IGNORECASE):
        path = f"/{unquote(found[1])}"
    elif url.startswith("/"):
        path = place
    else:
        return
    yield from dict.fromkeys((Path(path), Path(os.path.normpath(path))))


def names(declared: Declared, place: str) -> bool:
    """Whether a project itself names an address, in any version."""

    def bare(address: str) -> str:
        return re.sub(r"(?<=.)@[^/@]*$", "", plain(address))

    return bare(place) in {bare(each) for each in _of(declared)}


def _of(declared: Declared) -> Iterator[str]:
    """Yield the addresses in the files of a project."""
    for name in declared.files:
        text = declared.text(name)
        if name == "uv.lock":
            yield from uv_lock.read(text).addresses
        elif name == "pyproject.toml":
            tables = pyproject.relevant(text)
            yield from _in_texts(tables)
            yield from _repositories(tables["uv"].get("sources"))
        elif name == "uv.toml":
            yield from _in_texts(uv_config.of_project(declared))
        elif declared.kind == "conda" and name == declared.title:
            environment = conda_file.read(text)
            yield from _in_texts({**environment, "variables": ""})
            for each in environment["dependencies"]:
                yield from IN_BRACKETS.findall(each) if isinstance(each, str) else ()
            for line in pip_lines(environment):
                yield from _in_lines(line)
        else:
            yield from _in_lines(text)


def _repositories(sources: Any) -> Iterator[str]:
    """Yield the repositories and archives of [tool.uv.sources], also those on this machine: they are uploaded."""
    for each in sources.values() if isinstance(sources, dict) else ():
        for source in each if isinstance(each, list) else [each]:
            if isinstance(source, dict):
                yield from (source[name] for name in ("git", "url") if isinstance(source.get(name), str))


def _in_lines(text: str) -> Iterator[str]:
    for line in requirements.read(text):
        if line.kind in ("index", "include", "constraint", "requirement"):
            yield from _in_texts(line.value)


def _in_texts(value: Any) -> Iterator[str]:
    """Yield the addresses in the texts of a table."""
    if isinstance(value, str):
        text = re.sub(r"[\x00-\x1f]", "", value)
        yield from DIRECT.findall(text) or SCP.findall(text)
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _in_texts(each)


def _of_user() -> Iterator[str]:
    """Yield the addresses in the settings of the user, for uv and for pip."""
    pip = indexes.of_pip()
    yield from (pip.index, *pip.extra, *pip.find_links)
    for name in indexes.OWN:
        yield from (re.sub(r"^[\w.-]+=", "", word) for word in re.split(r"[\s,]+", os.environ.get(name, "")))
    for settings in uv_config.of_user():
        yield from _in_texts(settings)


def _usual() -> list[str]:
    """Return the index of uv if nothing is configured, in uv's own words."""
    words = ["pip", "compile", "-", "--offline", "--quiet", "--no-header", "--emit-index-url"]
    return re.findall(r"^--index-url (\S+)$", uv_program.run(words, inert=True, bare=True).out, re.MULTILINE)


def _is_pytorch(address: str) -> bool:
    scheme, _, rest = address.partition("://")
    host = rest.partition("/")[0]
    return scheme == "https" and bool(HOST.fullmatch(host)) and (host == PYTORCH or host.endswith(f".{PYTORCH}"))


def _below(address: str, other: str) -> bool:
    host = address.partition("://")[2].partition("/")[0]
    return bool(other and HOST.fullmatch(host)) and (address == other or address.startswith(f"{other}/"))
