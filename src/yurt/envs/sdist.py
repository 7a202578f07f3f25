"""Reads what a source distribution needs to be built. Does not run its code."""

from __future__ import annotations

import contextlib
import lzma
import re
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from yurt.envs import pyproject, requirements

LARGEST = 1 << 20
"""Bytes of a file that is read. One that was compressed a thousandfold would fill the memory."""

UNREADABLE = (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError)
"""RuntimeError: a zip file with a password, or compressed in an unknown way."""

DEFAULT = ["setuptools", "wheel"]
"""What builds a package without a pyproject.toml."""


def build_requirements(file: Path) -> list[str]:
    """Return the declared build requirements. ValueError with the reason if they cannot be known."""
    texts = _top_files(file, ("pyproject.toml", "setup.py", "setup.cfg"))
    if "pyproject.toml" in texts:
        try:
            build = pyproject.parsed(texts["pyproject.toml"].decode()).get("build-system")
            listed = build.get("requires", []) if isinstance(build, dict) else []
        except ValueError:
            raise ValueError("its pyproject.toml is invalid") from None
        if isinstance(build, dict) and isinstance(listed, list):
            required = [_package(each) for each in listed]
            # Older versions of setuptools need wheel and declare it only while they build.
            return [*required, "wheel"] if "setuptools" in str(build.get("build-backend", "setuptools")) else required
    if not texts:
        raise ValueError("its source code has neither a pyproject.toml nor a setup.py")
    return DEFAULT


def _package(text: object) -> str:
    """Return a build requirement. ValueError if it is an option or a path of this machine, which uv would follow."""
    with contextlib.suppress(requirements.Invalid):
        match requirements.read(str(text)):
            case [requirements.Line(kind="requirement", option="")]:
                return str(text)
    raise ValueError(f"it requires '{requirements.shown(str(text))}' for its build, which is not a package")


def _top_files(file: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return files of the top folder of an archive by their name. ValueError if the archive cannot be read."""
    wanted = re.compile(rf"[^/]+/({'|'.join(map(re.escape, names))})")
    found: dict[str, bytes] = {}
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    if each := wanted.fullmatch(name):
                        with archive.open(name) as content:
                            found[each[1]] = _limited(content, each[1])
            return found
        with tarfile.open(file) as tar:
            for member in tar:
                each = wanted.fullmatch(member.name.removeprefix("./"))
                opened = tar.extractfile(member) if each and member.isfile() else None
                if each and opened:
                    found[each[1]] = _limited(opened, each[1])
    except UNREADABLE:
        raise ValueError("its source code is not a readable archive") from None
    return found


def _limited(file: IO[bytes], name: str) -> bytes:
    content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"its {name} is larger than 1 MB")
    return content
