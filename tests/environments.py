"""Where yurt keeps environments on the clusters of the lab, and how tests leave none behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import Ssh
from yurt.lab import Lab

BASE = "/lustre/scratch/alice/yurt"
ENVS = f"{BASE}/envs"
WHEELS = f"{BASE}/wheels"


@pytest.fixture
def no_environments(lab: Lab) -> Iterator[Ssh]:
    """ssh to the clusters; no environments, uploaded wheels and programs are there, neither before nor after a test."""
    ssh = Ssh(lab)
    _clear(ssh)
    yield ssh
    _clear(ssh)


def _clear(ssh: Ssh) -> None:
    builders = "pkill -KILL -f 'build[.][0-9a-f]*[.]sh'"  # one that is left may still be writing
    folders = f"{ENVS} {WHEELS} {BASE}/tools ~/.yurt"
    for cluster in ("alpha", "beta"):
        ssh(cluster, f"{builders}; until rm -rf {folders} 2> /dev/null; do chmod -R u+w {folders}; sleep 0.2; done")
