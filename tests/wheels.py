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
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel with one module; return its path."""
    module = name.replace("-", "_").lower()
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Python: {requires_python}"] if requires_python else []
    metadata += [f"Requires-Dist: {each}" for each in requires]
    files = {
        f"{module}.py": code,
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
