"""Packs the source code of a package that is declared by a repository, so that it can be built on a site.

The package itself makes its source distribution, because many packages take their version from the repository.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from yurt import private
from yurt.envs import failures, uv_program

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


def pack(revision: Revision, cache: Path, variables: Mapping[str, str]) -> Path:
    """Return the source distribution of a commit, CACHE/SHA256/NAME, which is made once. ValueError with the reason."""
    record = cache / FOLDER / revision.key
    if record.exists() and (known := cache / record.read_text()).exists():
        return known
    private.make_folder(record.parent)
    with tempfile.TemporaryDirectory(prefix="part-", dir=cache) as name:
        folder = Path(name)
        clone = folder / "clone"
        _git(folder, "clone", "--quiet", "--no-checkout", "--", revision.url, str(clone))
        _git(clone, "checkout", "--quiet", "--detach", revision.commit)
        _git(clone, "submodule", "--quiet", "update", "--init", "--recursive")
        words = ["build", "--sdist", "--python", sys.executable, "--out-dir", str(folder / "out")]
        done = uv_program.run([*words, str(clone / revision.subfolder)], folder=folder, variables=variables)
        made = sorted((folder / "out").glob("*.tar.gz"))
        if done.code or not made:
            raise ValueError(f"its source code cannot be packed: {failures.explain(done.err).sentence}")
        target = cache / hashlib.sha256(made[0].read_bytes()).hexdigest() / made[0].name
        private.make_folder(target.parent)
        made[0].rename(target)
        (folder / "record").write_text(str(target.relative_to(cache)))
        (folder / "record").rename(record)
    return target


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
