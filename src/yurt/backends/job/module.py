"""The modules that scripts in a run can import, as uploaded: files in a folder named by their checksum.

They are `yurt`, and replacements for mrunner and munch. A dev node, a service and a run that stages files also get
their own program.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from yurt.model.digest import checksum
from yurt.model.run import Run

SOURCE = Path(__file__).parents[2] / "node"
FILES = {
    "yurt/__init__.py": "shipped.py",
    "yurt/node/__init__.py": "__init__.py",
    "yurt/node/checkpoints.py": "checkpoints.py",
    "yurt/node/metrics.py": "metrics.py",
    "yurt/node/values.py": "values.py",
    "mrunner/__init__.py": "shim/mrunner/__init__.py",
    "mrunner/helpers/__init__.py": "shim/mrunner/helpers/__init__.py",
    "mrunner/helpers/client_helper.py": "shim/mrunner/helpers/client_helper.py",
    "munch/__init__.py": "shim/munch/__init__.py",
}
PROGRAMS: dict[str, Sequence[str]] = {"dev": ("backup", "dev"), "service": ("service",), "stage": ("stage",)}
"""The programs of dev nodes, of services, and of runs that stage files: all files of these folders."""

SHARED = ("files.py", "limits.py", "writers.py")
"""What these programs share."""


def needed(run: Run) -> str:
    """Return which modules a run needs: those of its purpose, or `stage`."""
    return run.purpose if run.stage is None else "stage"


@cache
def files(purpose: str = "run") -> Mapping[str, bytes]:
    """Return the content of each file, by path, for what `needed` returns."""
    found = {name: (SOURCE / source).read_bytes() for name, source in FILES.items()}
    if purpose in PROGRAMS:
        found |= {f"yurt/node/{name}": (SOURCE / name).read_bytes() for name in SHARED}
    for package in PROGRAMS.get(purpose, ()):
        for each in sorted((SOURCE / package).iterdir()):
            if each.suffix in (".py", ".sh", ".zsh", ".fish"):
                found[f"yurt/node/{package}/{each.name}"] = each.read_bytes()
    return found


@cache
def name(purpose: str = "run") -> str:
    """Return the name of the folder: a checksum of the files."""
    content = (name.encode() + b"\0%d\0" % len(each) + each for name, each in files(purpose).items())
    return checksum(b"".join(content), 10).hex()


@cache
def parcel(purpose: str = "run") -> bytes:
    """Return all files in one gzip stream, as place.sh expects it: each file follows a line with its size and path."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    text = b"".join(f"{len(each)} {name}\n".encode() + each for name, each in files(purpose).items())
    return packing.compress(text) + packing.flush()
