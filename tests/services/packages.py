"""Packages of this virtual environment that the users of the lab's nodes can import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PARENT = "/opt"
"""A folder of this machine that nodes of the lab share."""


@contextmanager
def environment() -> Iterator[Path]:
    """Yield the environment, or a copy of hard links if nodes do not see it: they have a /tmp of their own."""
    own = Path(sys.prefix)
    if not own.is_relative_to("/tmp") and all(each.stat().st_mode & 0o005 == 0o005 for each in (own, *own.parents)):
        yield own
        return
    copy = Path(tempfile.mkdtemp(prefix="yurt-test-packages-", dir=PARENT))
    try:
        copy.chmod(0o755)
        for name in ("lib", "share", "etc"):
            if (own / name).is_dir():
                linked = subprocess.run(["cp", "-al", own / name, copy], capture_output=True, check=False)
                if linked.returncode:  # on another disk
                    shutil.rmtree(copy / name, ignore_errors=True)
                    shutil.copytree(own / name, copy / name, symlinks=True)
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def variables(home: Path) -> dict[str, str]:
    """Return the variables with which the Python of a node finds the packages, and Jupyter its extensions."""
    packages = home / os.path.relpath(sysconfig.get_path("purelib"), sys.prefix)
    return {"PYTHONPATH": str(packages), "JUPYTER_CONFIG_PATH": str(home / "etc/jupyter")}
