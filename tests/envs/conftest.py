"""A machine without settings of pip and uv, and tiny packages made with the standard library."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from yurt.envs.target import Target

TARGETS = (
    Target("3.9.18", "x86_64", "glibc 2.17"),
    Target("3.11.2", "x86_64", "glibc 2.36"),
    Target("3.12.1", "aarch64", "glibc 2.31"),
    Target("3.11.9", "x86_64", "musl 1.2"),
)
KEPT = ("PIP_CERT", "PIP_PROXY")
"""Settings that a machine may need to reach the package index."""


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the settings of pip and uv of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")) and name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages that is the only index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    yield folder


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files by their path in a folder; return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def make_wheel(
    folder: Path, name: str, version: str = "1.0", *, tag: str = "py3-none-any", needs: str = "", python: str = ""
) -> Path:
    """Make a wheel with one module."""
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += f"Requires-Dist: {needs}\n" * bool(needs) + f"Requires-Python: {python}\n" * bool(python)
    file = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", about)
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


def make_sdist(folder: Path, name: str, version: str = "1.0", **files: str) -> Path:
    """Make a source distribution with PKG-INFO and these files, whose names have `__` in place of the dot."""
    about = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n"
    texts = {"PKG-INFO": about, **{key.replace("__", "."): text for key, text in files.items()}}
    file = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for key, text in texts.items():
            member = tarfile.TarInfo(f"{name}-{version}/{key}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return file
