"""Virtual environments with packages from PyPI: built once, installed on a cluster."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.downloads import Unavailable, cached

if TYPE_CHECKING:
    from yurt.lab import Lab

PYTHON = "/usr/bin/python3"
"""The Python of this machine and of the lab's hosts."""

PLACE = "/lustre/scratch/alice/venvs"

Install = Callable[..., str]


@pytest.fixture(scope="module")
def venv(lab: Lab) -> Iterator[Install]:
    """A function that installs packages in a venv of alice on alpha and returns its path on the cluster.

    Skips the test if they cannot be downloaded. All venvs are removed after the tests of the module.
    """
    from tests.lab.conftest import Ssh

    ssh = Ssh(lab)
    used: list[str] = []

    def install(name: str, *requirements: str) -> str:
        target = f"{PLACE}/{name}"
        if name not in used:
            recipe = "\n".join([_run([PYTHON, "--version"]), target, *requirements, Path(__file__).read_text()])
            digest = hashlib.sha256(recipe.encode()).hexdigest()[:8]
            built = cached(f"venv-{name}-{digest}", lambda folder: build(folder, target, requirements))
            ssh("alpha", f"rm -rf {target} && {PYTHON} -m venv --without-pip {target}")
            ssh.send(built, "alpha", target)
            used.append(name)
        return target

    yield install
    ssh("alpha", f"rm -rf {PLACE}")


def build(folder: Path, target: str, requirements: tuple[str, ...]) -> None:
    """Write the libraries and programs of a venv that is used as `target`."""
    work = folder / "work"
    _run([PYTHON, "-m", "venv", str(work)])
    pip = [f"{work}/bin/pip", "--disable-pip-version-check", "-q"]
    _run([*pip, "install", "--only-binary=:all:", *requirements])
    _run([*pip, "uninstall", "--yes", "pip"])
    shutil.move(work / "lib", folder / "lib")
    (folder / "bin").mkdir()
    for program in (work / "bin").iterdir():
        start, newline, rest = program.read_bytes().partition(b"\n")
        if start.startswith(f"#!{work}/bin/python".encode()):
            moved = folder / "bin" / program.name
            moved.write_bytes(f"#!{target}/bin/python".encode() + newline + rest)
            moved.chmod(0o755)
    shutil.rmtree(work)


def _run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable((done.stderr.strip().splitlines() or [f"{argv[0]} failed"])[-1])
    return done.stdout
