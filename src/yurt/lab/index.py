"""A cluster's package index: a folder of distribution files in the layout of PEP 503, which index_server.py serves."""

from __future__ import annotations

import fcntl
import hashlib
import html
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from yurt.errors import NotFoundError, UserError
from yurt.lab import tree

WHEEL = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._]*)-[^-]+(-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl")
SDIST = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)-\d[^-]*\.tar\.gz")


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the index."""

    package: str
    """The normalised name, as `pip install` accepts it."""
    file: str
    """The file's name."""
    sha256: str
    """Hash of the file."""


@dataclass(frozen=True)
class Index:
    """A package index. Needs no server: a running one serves each change at once."""

    folder: Path

    def create(self) -> None:
        """Write the page that lists all packages. Changes nothing else."""
        links = "".join(f'<a href="{name}/">{name}</a><br>\n' for name in self.packages())
        tree.write(self.folder, {"simple/index.html": tree.File(_page("Packages", links))})

    def packages(self) -> list[str]:
        """Return the names of all packages."""
        return sorted(page.parent.name for page in self.folder.glob("simple/*/index.html"))

    def add(self, wheels: Iterable[Path]) -> list[Distribution]:
        """Copy wheels and source distributions into the index. Replaces files of the same name.

        A client sees either the previous or the new pages. Raises UserError or NotFoundError before it copies anything
        if one of the files cannot be installed by pip.
        """
        chosen = [(_package(Path(each)), Path(each)) for each in wheels]
        with self._locked():
            for package, file in chosen:
                _copy(file, self.folder / "simple" / package)
            hashes = {package: self._list(package) for package in dict.fromkeys(package for package, _file in chosen)}
            self.create()
        return [
            Distribution(package=package, file=file.name, sha256=hashes[package][file.name]) for package, file in chosen
        ]

    def _list(self, package: str) -> dict[str, str]:
        """Write the page of a package; return the hash of each of its files."""
        files = sorted(each for each in (self.folder / "simple" / package).iterdir() if _match(each.name))
        hashes = {each.name: _sha256(each) for each in files}
        links = "".join(
            f'<a href="{html.escape(each.name)}#sha256={hashes[each.name]}"{_requires(each)}>'
            f"{html.escape(each.name)}</a><br>\n"
            for each in files
        )
        tree.write(self.folder, {f"simple/{package}/index.html": tree.File(_page(package, links))})
        return hashes

    @contextmanager
    def _locked(self) -> Iterator[None]:
        tree.write(self.folder, {})
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _match(name: str) -> re.Match[str] | None:
    return WHEEL.fullmatch(name) or SDIST.fullmatch(name)


def _package(file: Path) -> str:
    """Return the normalised package name of a distribution file."""
    import tarfile
    import zipfile

    if not file.is_file():
        raise NotFoundError(f"file '{file}' not found", code="not-found")
    found = _match(file.name)
    valid = zipfile.is_zipfile(file) if file.suffix == ".whl" else found is not None and tarfile.is_tarfile(file)
    if found is None or not valid:
        raise UserError(
            f"'{file}' is not a wheel (NAME-VERSION-…-PLATFORM.whl) or a source distribution (NAME-VERSION.tar.gz)",
            code="usage",
            hint="build one with `pip wheel --no-deps .`",
        )
    return re.sub(r"[-_.]+", "-", found["name"]).lower()


def _copy(file: Path, folder: Path) -> None:
    """Copy a file into a folder of the index. Atomic. Not a hard link: the server needs a mode and bytes that stay."""
    tree.write(folder, {})
    aside = folder / f".{file.name}.new"
    shutil.copyfile(file, aside)
    aside.chmod(0o644)
    aside.rename(folder / file.name)


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _requires(file: Path) -> str:
    """Return the attribute by which pip skips wheels for other versions of Python."""
    import zipfile
    from email.parser import HeaderParser

    if file.suffix != ".whl":
        return ""
    with zipfile.ZipFile(file) as wheel:
        named = [name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        text = wheel.read(named[0]).decode(errors="replace") if named else ""
    wanted = HeaderParser().parsestr(text)["Requires-Python"]
    return f' data-requires-python="{html.escape(wanted)}"' if wanted else ""


def _page(title: str, links: str) -> str:
    return f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>\n{links}</body></html>\n"
