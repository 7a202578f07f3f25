"""Where the packages of an environment come from: a wheelhouse, an index that lacks some, uploads."""

from __future__ import annotations

import base64
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.environments import WHEELS
from tests.envs.test_envs import declare, env_of
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from tests.wheels import make_repository, tiny
from yurt.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("envs")]

HOUSE = "/lustre/scratch/alice/house"
COMPILED = f"cp311-cp311-linux_{platform.machine()}"


@pytest.fixture
def ssh(no_environments: Ssh) -> Iterator[Ssh]:
    yield no_environments
    no_environments("beta", f"rm -rf {HOUSE}")


@pytest.fixture
def shelf(tmp_path: Path, laptop: Laptop) -> Path:
    """A folder of packages, which this machine uses besides its index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    laptop.environment |= {"PIP_FIND_LINKS": str(folder), "YURT_CLOCKS": "slow=14 last_refresh=1 rest=0 lease=12"}
    return folder


def put(ssh: Ssh, cluster: str, wheel: Path, folder: str) -> str:
    """Copy a wheel to a folder of a cluster; return its path there."""
    text = base64.b64encode(wheel.read_bytes()).decode()
    ssh(cluster, f"mkdir -p {folder} && echo {text} | base64 -d > {folder}/{wheel.name}")
    return f"{folder}/{wheel.name}"


def set_key(laptop: Laptop, context: str, key: str, value: object) -> None:
    file = laptop.home / "config" / "contexts.yaml"
    content = yaml.safe_load(file.read_text())
    content["contexts"][context][key] = value
    file.write_text(yaml.safe_dump(content))


def uploaded(ssh: Ssh, cluster: str) -> set[str]:
    """The names of the files that were uploaded, without their folders and a greeting."""
    words = ssh(cluster, f"find {WHEELS} -type f -printf '%f\\n'").split()
    return {each for each in words if each.endswith((".whl", ".tar.gz"))}


@pytest.mark.slow
def test_a_wheelhouse_is_preferred_and_only_the_rest_is_uploaded(
    laptop: Laptop, ssh: Ssh, shelf: Path, tmp_path: Path
) -> None:
    for name in ("yurt-fast", "yurt-more", "yurt-rest"):
        tiny(shelf, name, "1.0")
        tiny(shelf, name, "2.0")
    aside = tmp_path / "aside"
    house = f"{HOUSE}/avx2"
    fast = put(ssh, "beta", tiny(aside, "yurt-fast", "1.0+site", tag=COMPILED, requires=["yurt-more<3"]), house)
    put(ssh, "beta", tiny(aside, "yurt-fast", "3.0+site", tag="cp39-cp39-linux_ppc64le"), house)
    more = put(ssh, "beta", tiny(aside, "yurt-more", "1.5+site"), f"{HOUSE}/generic")
    set_key(laptop, "beta", "wheelhouse", ["$SCRATCH/house/avx*", "$SCRATCH/house/none"])
    repository = make_repository(tmp_path / "thing", "yurt_thing", "4.5")
    declare(laptop, f"yurt-fast<3\nyurt-rest==1.0\nyurt_thing @ git+{repository}\n")
    assert laptop("trust", repository).code == 0
    (laptop.project / "train.py").write_text(
        "from importlib.metadata import version\n"
        "print(*map(version, ('yurt-fast', 'yurt-more', 'yurt-rest', 'yurt_thing')))\n"
    )
    refused = laptop("--context", "beta", "run", "train.py")
    assert refused.code and "beta has no folder '$SCRATCH/house/none'" in refused.err, refused
    set_key(laptop, "beta", "wheelhouse", ["$SCRATCH/house/avx*", "$SCRATCH/house/generic"])
    run = laptop.run("beta", "--wait", "train.py")
    assert laptop("logs", run["run"]["id"]).out.split() == ["1.0+site", "1.5+site", "1.0", "4.5"]
    assert uploaded(ssh, "beta") == {"yurt_rest-1.0-py3-none-any.whl", "yurt_thing-4.5.tar.gz"}
    shown = laptop("--context", "beta", "env", "show", "--json").json["data"]["packages"]
    assert [each["wheelhouse"] for each in shown] == [fast, more, "", ""]
    assert f"yurt-fast 1.0+site from {fast}" in laptop("--context", "beta", "env", "show").out
    ssh("beta", f"rm -r {fast} {env_of(run['run'])}/env-*")
    gone = laptop("--context", "beta", "env", "build")
    assert gone.code == 5 and f"{fast} is no longer in the wheelhouse" in gone.err and "--upgrade" in gone.err, gone
    again = laptop("--context", "beta", "env", "build", "--upgrade", "--json")
    assert again.code == 0 and again.json["data"]["condition"] == "ready", again


@pytest.mark.slow
def test_what_the_index_of_a_site_lacks_is_uploaded(laptop: Laptop, ssh: Ssh, lab: Lab, shelf: Path) -> None:
    lab.index.add([tiny(shelf, "yurt-there", "1.0"), tiny(shelf, "yurt-behind", "1.0")])
    tiny(shelf, "yurt-behind", "2.0")
    tiny(shelf, "yurt-unknown", "1.0")
    declare(laptop, "yurt-there\nyurt-behind==2.0\nyurt-unknown\n")
    (laptop.project / "train.py").write_text("import yurt_there, yurt_behind, yurt_unknown\nprint('all')\n")
    run = laptop.run("alpha", "train.py")["run"]
    ended = laptop.ended(run["id"])
    assert ended["state"] == "completed", ended
    assert laptop("logs", run["id"]).out.split() == ["all"]
    assert uploaded(ssh, "alpha") == {"yurt_behind-2.0-py3-none-any.whl", "yurt_unknown-1.0-py3-none-any.whl"}
