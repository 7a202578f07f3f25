"""Reads what a source distribution needs to be built. Does not run its code."""

from __future__ import annotations

import contextlib
import re
import tarfile
import zipfile
from pathlib import Path

from yurt.envs import pyproject, requirements

DEFAULT = ["setuptools", "wheel"]
"""What builds a package without a pyproject.toml."""


def build_requirements(file: Path) -> list[str]:
    """Return the declared build requirements. ValueError with the reason if they cannot be known."""
    texts = _top_files(file, ("pyproject.toml", "setup.py", "setup.cfg"))
    if "pyproject.toml" in texts:
        try:
            build = pyproject.parsed(texts["pyproject.toml"].decode()).get("build-system")
        except ValueError:
            raise ValueError("its pyproject.toml is invalid") from None
        if build is not None:
            required = [_package(each) for each in build.get("requires", [])]
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
                        found[each[1]] = archive.read(name)
            return found
        with tarfile.open(file) as tar:
            for member in tar:
                each = wanted.fullmatch(member.name.removeprefix("./"))
                content = tar.extractfile(member) if each and member.isfile() else None
                if each and content:
                    found[each[1]] = content.read()
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError):
        raise ValueError("its source code is not a readable archive") from None
    return found
