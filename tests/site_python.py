"""Gives a cluster whose Slurm comes with another Python the one of this machine, as sites offer several versions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from yurt.api.pickles import HERE
from yurt.lab import Lab
from yurt.lab.cluster import inside

PROGRAM, LIBRARY = Path(f"/usr/bin/python{HERE}"), Path(f"/usr/lib/python{HERE}")
"""The Python of Debian runs in any folder, with its library beside it."""

SHARED = "lustre/project/python"
"""Where a cluster has it."""

ON_PATH = f"/usr/local/bin/python{HERE}"


def lacks_it(lab: Lab) -> bool:
    """Whether the clusters of a lab have another Python than the tests."""
    return lab.root != Path("/") and (lab.root / "usr/bin/python3").readlink().name != f"python{HERE}"


@contextmanager
def given(lab: Lab, cluster: str, link: str = ON_PATH) -> Iterator[None]:
    """Install it on the hosts that users reach, with a link to it. What was there before is restored."""
    found = lab.cluster(cluster)
    shared = Path(f"/proc/{found.pid(found.spec.login.name)}/root") / SHARED
    ignored = shutil.ignore_patterns("__pycache__", "test", "config-*", "idlelib")
    shutil.copytree(LIBRARY, shared / "lib" / LIBRARY.name, ignore=ignored)
    (shared / "bin").mkdir()
    shutil.copy(PROGRAM, shared / "bin" / "python3")

    def on_hosts(script: str) -> None:
        for host in found.spec.hosts:
            if host.role != "ctl":
                subprocess.run(inside(found.pid(host.name), ["sh", "-ec", script]), check=True, timeout=60)

    try:
        on_hosts(f"[ ! -L {link} ] || mv {link} {link}.before; ln -s /{SHARED}/bin/python3 {link}")
        yield
    finally:
        on_hosts(f"rm {link}; [ ! -L {link}.before ] || mv {link}.before {link}")
        shutil.rmtree(shared)
