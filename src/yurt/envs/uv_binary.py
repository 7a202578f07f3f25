"""The program uv for a site that lacks it, from a wheel of the package index. It is static, so it runs everywhere."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import msgspec

from yurt.envs import uv_program, wheels
from yurt.envs.lock import Lock
from yurt.envs.target import Target
from yurt.errors import UserError
from yurt.model.progress import Watch, unwatched

MACHINES = ("x86_64", "aarch64")
STATIC = "musl 1.1"
"""The C library whose wheels of uv are static."""


def fetch(machine: str, folder: Path, *, watch: Watch = unwatched) -> bytes:
    """Return uv for a machine, compressed by gzip, in the version of this machine's uv. Errors as in `wheels.fetch`."""
    lock = Lock(f"uv=={version()}\n")
    (wheel,) = wheels.fetch(lock, Target("3.11.0", machine, STATIC), folder, watch=watch)
    try:
        with zipfile.ZipFile(wheel.path) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(".data/scripts/uv"))
            return gzip.compress(archive.read(name), 6, mtime=0)
    except (zipfile.BadZipFile, ValueError):
        raise UserError(f"'{wheel.file}' contains no program uv", code="config-invalid") from None


def version() -> str:
    """Return the version of uv on this machine."""
    words = uv_program.run(["--version"]).out.split()
    return words[1] if len(words) > 1 else ""


def pythons() -> list[str]:
    """Return the versions of Python that uv can download, the newest of each minor version. Asks no network."""
    listed = uv_program.run(["python", "list", "--only-downloads", "--output-format", "json"])
    try:
        rows = msgspec.json.decode(listed.out, type=list[_Download])
    except msgspec.MsgspecError:
        return []
    return [each.version for each in rows if each.is_usual]


class _Download(msgspec.Struct, frozen=True):
    version: str
    implementation: str = ""
    variant: str = ""

    @property
    def is_usual(self) -> bool:
        return (self.implementation, self.variant) == ("cpython", "default") and self.version.replace(".", "").isdigit()
