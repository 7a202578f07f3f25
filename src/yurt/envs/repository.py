"""Packs the source code of a package that is declared by a repository, so that it can be built on a site.

A package whose version is in its pyproject.toml is packed as it is. Others take it from the repository, by their own
build code, which runs here only if the user has agreed to that.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import msgspec
from packaging.version import Version

from yurt import private
from yurt.config.text import text_of
from yurt.envs import failures, indexes, pyproject, uv_program
from yurt.errors import UnconfirmedError, UserError

FOLDER = "commits"
"""The subfolder of the cache that says which file was made from a commit."""


class Revision(msgspec.Struct, frozen=True):
    """A commit of a repository, and the folder of the package in it."""

    url: str
    commit: str
    subfolder: str = ""

    @property
    def key(self) -> str:
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:32]


def pack(revision: Revision, cache: Path, name: str, *, may_build: bool = False) -> Path:
    """Return the source distribution of a commit, CACHE/SHA256/NAME, which is made once. ValueError with the reason.

    UnconfirmedError: the code of the package has to run for that, and `may_build` is false.
    """
    record = cache / FOLDER / revision.key
    if record.exists() and (known := cache / record.read_text()).exists():
        return known
    private.make_folder(record.parent)
    with tempfile.TemporaryDirectory(prefix="part-", dir=cache) as aside:
        folder = Path(aside)
        clone = folder / "clone"
        _git(folder, "clone", "--quiet", "--no-checkout", "--", revision.url, str(clone))
        _git(clone, "checkout", "--quiet", "--detach", revision.commit)
        _git(clone, "submodule", "--quiet", "update", "--init", "--recursive")
        source = (clone / revision.subfolder).resolve()
        if not source.is_relative_to(clone.resolve()):
            raise ValueError(f"its folder {revision.subfolder} is outside its repository")
        made = _as_it_is(source, folder, name) or _built(source, folder, name, may_build)
        target = cache / hashlib.sha256(made.read_bytes()).hexdigest() / made.name
        private.make_folder(target.parent)
        made.rename(target)
        (folder / "record").write_text(str(target.relative_to(cache)))
        (folder / "record").rename(record)
    return target


def _as_it_is(source: Path, folder: Path, name: str) -> Path | None:
    """Pack the files of a package with a fixed version; None if its version is not fixed."""
    try:
        project = pyproject.parsed(text_of(source / "pyproject.toml")).get("project", {})
        version = str(Version(project["version"]))
    except (UserError, ValueError, KeyError, TypeError, AttributeError):
        return None
    stem = f"{name.replace('-', '_')}-{version}"
    made = folder / f"{stem}.tar.gz"
    with tarfile.open(made, "w:gz") as archive:
        archive.add(source, stem, filter=lambda member: None if "/.git/" in f"{member.name}/" else member)
    return made


def _built(source: Path, folder: Path, name: str, may_build: bool) -> Path:
    """Let a package make its source distribution."""
    if not may_build:
        raise UnconfirmedError(
            f"'{name}' takes its version from its repository: to pack it, its code must run on this machine",
            kind="build",
            names=[name],
        )
    words = ["build", "--sdist", "--python", sys.executable, "--out-dir", str(folder / "out"), str(source)]
    done = uv_program.run(words, folder=folder, variables=indexes.for_uv().variables)
    made = sorted((folder / "out").glob("*.tar.gz"))
    if done.code or not made:
        raise ValueError(f"its source code cannot be packed: {failures.explain(done.err).sentence}")
    return made[0]


def _git(folder: Path, *words: str) -> None:
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    argv, nothing = ["git", *words], subprocess.DEVNULL
    try:
        done = subprocess.run(
            argv, cwd=folder, env=environment, stdin=nothing, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ValueError("git is not installed on this machine") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise ValueError(f"git cannot fetch its repository ({lines[-1] if lines else 'git failed'})")
