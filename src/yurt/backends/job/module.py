"""The modules that scripts in a run can import, as uploaded: files in a folder named by their checksum.

They are `yurt`, and replacements for mrunner and munch.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from yurt.model.digest import checksum

SOURCE = Path(__file__).parents[2] / "node"
FILES = {
    "yurt/__init__.py": "shipped.py",
    "yurt/node/__init__.py": "__init__.py",
    "yurt/node/backup/__init__.py": "backup/__init__.py",
    "yurt/node/backup/attributes.py": "backup/attributes.py",
    "yurt/node/backup/checking.py": "backup/checking.py",
    "yurt/node/backup/claims.py": "backup/claims.py",
    "yurt/node/backup/entries.py": "backup/entries.py",
    "yurt/node/backup/errors.py": "backup/errors.py",
    "yurt/node/backup/ignore.py": "backup/ignore.py",
    "yurt/node/backup/keeping.py": "backup/keeping.py",
    "yurt/node/backup/manifest.py": "backup/manifest.py",
    "yurt/node/backup/pack_read.py": "backup/pack_read.py",
    "yurt/node/backup/pack_write.py": "backup/pack_write.py",
    "yurt/node/backup/pipes.py": "backup/pipes.py",
    "yurt/node/backup/plan.py": "backup/plan.py",
    "yurt/node/backup/programs.py": "backup/programs.py",
    "yurt/node/backup/progress.py": "backup/progress.py",
    "yurt/node/backup/publishing.py": "backup/publishing.py",
    "yurt/node/backup/reach.py": "backup/reach.py",
    "yurt/node/backup/rebuild.py": "backup/rebuild.py",
    "yurt/node/backup/restore.py": "backup/restore.py",
    "yurt/node/backup/retention.py": "backup/retention.py",
    "yurt/node/backup/saving.py": "backup/saving.py",
    "yurt/node/backup/scan.py": "backup/scan.py",
    "yurt/node/backup/state.py": "backup/state.py",
    "yurt/node/backup/storage.py": "backup/storage.py",
    "yurt/node/backup/tar_headers.py": "backup/tar_headers.py",
    "yurt/node/backup/versions.py": "backup/versions.py",
    "yurt/node/backup/workspace.py": "backup/workspace.py",
    "yurt/node/checkpoints.py": "checkpoints.py",
    "yurt/node/metrics.py": "metrics.py",
    "yurt/node/values.py": "values.py",
    "mrunner/__init__.py": "shim/mrunner/__init__.py",
    "mrunner/helpers/__init__.py": "shim/mrunner/helpers/__init__.py",
    "mrunner/helpers/client_helper.py": "shim/mrunner/helpers/client_helper.py",
    "munch/__init__.py": "shim/munch/__init__.py",
}
PACKAGES = ("backup", "dev")
"""The program of dev nodes: all files of these folders."""


@cache
def files() -> Mapping[str, bytes]:
    """Return the content of each file, by path."""
    found = {name: (SOURCE / source).read_bytes() for name, source in FILES.items()}
    for package in PACKAGES:
        for each in sorted((SOURCE / package).iterdir()):
            if each.suffix in (".py", ".sh"):
                found[f"yurt/node/{package}/{each.name}"] = each.read_bytes()
    return found


@cache
def name() -> str:
    """Return the name of the folder: a checksum of the files."""
    return checksum(b"".join(name.encode() + b"\0%d\0" % len(each) + each for name, each in files().items()), 10).hex()


@cache
def parcel() -> bytes:
    """Return all files in one gzip stream, as place.sh expects it: each file follows a line with its size and path."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    text = b"".join(f"{len(each)} {name}\n".encode() + each for name, each in files().items())
    return packing.compress(text) + packing.flush()
