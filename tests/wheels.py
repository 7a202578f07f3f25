"""Wheels for tests: tiny ones made on the spot, and real ones downloaded from PyPI once."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.downloads import Unavailable, cached


def tiny(
    folder: Path,
    name: str = "tiny",
    version: str = "1.0",
    *,
    code: str = "x = 1\n",
    requires: Sequence[str] = (),
    requires_python: str = "",
    modules: int = 0,
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel with one module; return its path. `modules`: with a package of that many modules instead."""
    module = name.replace("-", "_").lower()
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Python: {requires_python}"] if requires_python else []
    metadata += [f"Requires-Dist: {each}" for each in requires]
    sources = [f"{module}/m{number}.py" for number in range(modules)] + [f"{module}/__init__.py"]
    files = {
        **dict.fromkeys(sources if modules else [f"{module}.py"], code),
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items())
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return wheel


BACKEND = """\
import io, tarfile, zipfile

def build_sdist(folder, settings=None):
    with tarfile.open(folder + "/NAME-VERSION.tar.gz", "w:gz") as archive:
        for file in ("pyproject.toml", "backend.py"):
            archive.add(file, "NAME-VERSION/" + file)
        about = b"Metadata-Version: 2.2\\nName: NAME\\nVersion: VERSION\\n"
        info = tarfile.TarInfo("NAME-VERSION/PKG-INFO")
        info.size = len(about)
        archive.addfile(info, io.BytesIO(about))
    return "NAME-VERSION.tar.gz"

def build_wheel(folder, settings=None, metadata=None):
    name = "NAME-VERSION-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as archive:
        archive.writestr("NAME.py", "x = 'NAME VERSION'\\n")
        archive.writestr("NAME-VERSION.dist-info/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: VERSION\\n")
        archive.writestr("NAME-VERSION.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr("NAME-VERSION.dist-info/RECORD", "")
    return name
"""
"""Builds a package with nothing besides the standard library."""


def make_repository(folder: Path, name: str, version: str) -> str:
    """Make a git repository with a package of one module; return its address."""
    folder.mkdir(parents=True)
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (folder / "pyproject.toml").write_text(f'{system}[project]\nname = "{name}"\nversion = "{version}"\n')
    (folder / "backend.py").write_text(BACKEND.replace("NAME", name).replace("VERSION", version))
    git = ["git", "-C", str(folder), "-c", "user.name=ada", "-c", "user.email=ada@host.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    return folder.as_uri()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def download(requirement: str, python: str, *, options: Sequence[str] = ("--no-deps",)) -> list[Path]:
    """Return the wheels of a requirement for this machine's platform and a version of Python, such as `3.11`.

    They are downloaded once. Skips the test if that fails.
    """

    def fetch(folder: Path) -> None:
        argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--only-binary=:all:"]
        argv += ["--python-version", python, "--dest", str(folder), *options, requirement]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable((done.stderr.strip().splitlines() or ["pip failed"])[-1])

    return sorted(cached(f"wheels/{requirement}-{python}", fetch).glob("*.whl"))
