"""Homes of two clusters in sync over real ssh: through this machine, and with one of them as the hub."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import YURT, Called
from tests.lab.conftest import Ssh
from tests.laptop import Laptop
from yurt.lab import Lab
from yurt.testing.waiting import eventually

pytestmark = pytest.mark.lab


class Homes:
    """A laptop that keeps a folder of both clusters in sync. Other tests use the rest of the homes."""

    def __init__(self, laptop: Laptop, ssh: Ssh, name: str) -> None:
        self.laptop, self.ssh, self.root = laptop, ssh, f"homes/{name}"
        self.folder = laptop.home / "folder"
        laptop.environment["UNISON"] = str(laptop.home / "unison")

    def configure(self, hub: str = "local") -> None:
        places = "".join(f"  {each}: {{root: {self.root}}}\n" for each in ("alpha", "beta"))
        file = self.laptop.home / "config" / "homes.yaml"
        file.write_text(f"hub: {hub}\nfolder: {self.folder}\nplaces:\n{places}")

    def sync(self, *words: str) -> Called:
        return self.laptop.quick("home", "sync", "--yes", *words)

    def write(self, place: str, path: str, text: str) -> None:
        self.ssh(place, f"mkdir -p {self.root} && printf %s '{text}' > '{self.root}/{path}'")

    def read(self, place: str, path: str) -> str:
        return self.ssh(place, f"cat '{self.root}/{path}'").splitlines()[-1]


@pytest.fixture
def homes(laptop: Laptop, lab: Lab, tmp_path: Path) -> Iterator[Homes]:
    ssh = Ssh(lab)
    # The sites remember each root. A lab that stays up must not take that of an earlier run for a lost one.
    found = Homes(laptop, ssh, f"{tmp_path.name}-{os.urandom(3).hex()}")
    found.configure()
    yield found
    for place in ("alpha", "beta"):
        ssh(place, f"rm -rf {found.root}")


def test_two_clusters_through_this_machine(homes: Homes) -> None:
    homes.write("alpha", "from alpha", "a")
    homes.write("beta", "from beta", "b")  # whose dotfiles print to both streams
    done = homes.sync()
    assert done.code == 0, done
    assert homes.read("alpha", "from beta") == "b"
    assert homes.read("beta", "from alpha") == "a"
    assert (homes.folder / "from beta").read_text() == "b"
    lines = done.out.splitlines()
    assert lines[0].startswith("alpha: 1 change to local, 1 change to alpha, 2 B, ")
    homes.write("beta", "from alpha", "changed on beta")
    (homes.folder / "from alpha").write_text("here")
    done = homes.sync("beta")
    assert done.code == 1 and "beta: no changes" in done.out and "1 conflict: see `yurt home conflicts`" in done.out
    shown = homes.laptop.quick("home", "status", "--json")
    assert shown.code == 1
    assert [(each["place"], each["conflicts"], each["code"]) for each in shown.json["data"]["pairs"]] == [
        ("alpha", 0, 0),
        ("beta", 1, 1),
    ]


def test_two_machines_do_not_sync_one_home_at_once(homes: Homes, second_laptop: Laptop) -> None:
    other = Homes(second_laptop, homes.ssh, homes.root.removeprefix("homes/"))
    other.configure()
    assert other.sync("alpha").code == 0
    held = "exec 9>>.unison/yurt/lock; flock 9; echo locked; exec cat"
    argv = ["ssh", "-F", homes.ssh.config, "-o", "BatchMode=yes", "alpha", held]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "locked\n"
        done = homes.sync("alpha")
        holder.stdin.close()
    assert done.code == 5, done
    assert "another sync of alpha is running (from " in done.out
    assert homes.sync("alpha").code == 0


@pytest.fixture
def linked(lab: Lab, homes: Homes) -> Iterator[Homes]:
    lab.faults.link()
    homes.ssh("alpha", "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new beta true")
    yield homes
    lab.faults.unlink()


def test_a_cluster_as_the_hub(linked: Homes, lab: Lab) -> None:
    linked.configure("alpha")
    linked.write("alpha", "from alpha", "a")
    linked.write("beta", "from beta", "b")
    linked.ssh("beta", f"mkdir {linked.root}/data && cd {linked.root}/data && touch $(seq 101)")
    done = linked.sync()
    assert done.code == 0 and done.out.startswith("beta: 2 changes to alpha, 1 change to beta, "), done
    assert linked.read("alpha", "from beta") == "b"
    assert linked.read("beta", "from alpha") == "a"
    assert not linked.folder.exists()
    assert "ignore = Path" in linked.laptop.quick("home", "profile").out
    done = linked.sync("local")
    assert done.code == 0 and (linked.folder / "from beta").read_text() == "b", done
    linked.ssh("beta", f"cd {linked.root} && rm -r data 'from alpha'")
    done = linked.laptop.quick("home", "sync", "beta")
    assert done.code == 1 and "large deletion on beta not copied to alpha: 101 files in 'data'" in done.out, done
    assert linked.ssh("alpha", f"ls {linked.root} | xargs").endswith("data from beta")
    linked.ssh("beta", f"rm -r {linked.root}/*")
    done = linked.sync("--refill", "beta", "beta")
    assert done.code == 0 and "beta had no files any more" in done.err, done
    assert linked.ssh("beta", f"ls {linked.root}/data | wc -l").splitlines()[-1] == "101"
    lab.faults.unlink()
    done = linked.sync()
    assert done.code == 4, done
    assert "alpha cannot reach beta" in done.out
    assert "local: 1 change to local, 1 file deleted" in done.out


@pytest.mark.slow
def test_a_cut_link(homes: Homes, lab: Lab) -> None:
    homes.write("alpha", "small", "x")
    assert homes.sync("alpha").code == 0
    (homes.folder / "large").write_bytes(os.urandom(80_000_000))
    environment = {**os.environ, **homes.laptop.environment, "YURT_CLOCKS": "rest=0 silent=3"}
    argv = [YURT, "home", "sync", "alpha"]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as yurt:
        arriving = f"ls {homes.root}/.unison.large.*.tmp"
        eventually(lambda: homes.ssh.ask("alpha", arriving).code == 0, pause=0.01)
        lab.faults.cut("alpha")
        try:
            assert yurt.stdout is not None
            out = yurt.stdout.read()
        finally:
            lab.faults.heal("alpha")
    assert yurt.returncode == 4, out
    done = homes.sync("alpha")
    assert done.code == 0, done
    digest = subprocess.run(["sha256sum"], input=(homes.folder / "large").read_bytes(), capture_output=True, check=True)
    assert homes.ssh("alpha", f"sha256sum < {homes.root}/large").split()[0] == digest.stdout.decode().split()[0]


@pytest.mark.slow
def test_a_killed_yurt(homes: Homes) -> None:
    assert homes.sync("alpha").code == 0
    (homes.folder / "large").write_bytes(os.urandom(40_000_000))
    environment = {**os.environ, **homes.laptop.environment}
    yurt = subprocess.Popen([YURT, "home", "sync", "alpha"], env=environment, stdout=subprocess.DEVNULL)
    arriving = f"ls {homes.root}/.unison.large.*.tmp"
    eventually(lambda: homes.ssh.ask("alpha", arriving).code == 0, pause=0.01)
    yurt.send_signal(signal.SIGKILL)
    yurt.wait()
    eventually(lambda: homes.sync("alpha").code == 0)
    assert homes.ssh("alpha", f"wc -c < {homes.root}/large") == "40000000"
