"""On a machine that cannot run a lab, `lab up` prints an error and a hint, and starts nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.calls import YURT
from yurt.errors import UserError
from yurt.lab import cgroups, packages, preflight, processes
from yurt.lab.instance import Instance


class Machine:
    """Calls `yurt lab up` under a prefix command or an environment that simulates another machine."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def up(self, *arguments: str, prefix: list[str] | None = None, **environment: str) -> tuple[int, str]:
        homes = {"YURT_CONFIG_HOME": str(self.home / "config"), "YURT_DATA_HOME": str(self.home / "data")}
        done = subprocess.run(
            [*(prefix or []), YURT, "lab", "up", *arguments],
            env={**os.environ, **homes, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    own = Instance("default", tmp_path / "data" / "lab" / "default")
    yield Machine(tmp_path)
    assert processes.marked(own.mark) == {}
    assert not [name for _index, name in socket.if_nameindex() if name.startswith(own.link(0)[:-1])]
    assert list(Path("/sys/fs/cgroup").glob(f"*/{own.group}")) == []
    assert not (tmp_path / "config" / "contexts.yaml").exists()


def test_not_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError) as caught:
        preflight.check_machine()
    assert caught.value.code == "lab-not-linux" and caught.value.exit_code == 2


@pytest.mark.lab
def test_not_root(machine: Machine) -> None:
    code, stderr = machine.up(prefix=["unshare", "--user"])
    assert (code, stderr) == (2, "yurt: the lab needs root\n  hint: run `sudo yurt lab up`\n")


@pytest.mark.lab
def test_no_namespaces(machine: Machine) -> None:
    code, stderr = machine.up(prefix=["setpriv", "--bounding-set", "-sys_admin"])
    assert code == 5 and "does not allow new namespaces" in stderr and "--privileged" in stderr


@pytest.mark.lab
def test_packages_missing(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "status").touch()
    code, stderr = machine.up(DPKG_ADMINDIR=str(tmp_path))
    assert code == 2 and "slurmctld" in stderr and "munge" in stderr and "yurt lab up --install" in stderr


@pytest.mark.lab
def test_packages_cannot_be_installed(machine: Machine, tmp_path: Path) -> None:
    """apt-get fails, and the user sees its message."""
    (tmp_path / "status").touch()
    lists = tmp_path / "lists"
    lists.mkdir()
    config = tmp_path / "apt.conf"
    config.write_text(
        f'Dir::State::status "{tmp_path}/status"; Dir::State::lists "{lists}"; Dir::Etc::sourceparts "/nowhere";\n'
        f'Dir::Etc::sourcelist "/nowhere"; Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";\n'
    )
    code, stderr = machine.up("--install", DPKG_ADMINDIR=str(tmp_path), APT_CONFIG=str(config))
    assert code == 5 and "could not be installed: E: Unable to locate package" in stderr


@pytest.mark.lab
def test_addresses_in_use(machine: Machine) -> None:
    take = 'ip link set lo up && ip addr add 10.78.0.1/16 dev lo && exec "$@"'
    code, stderr = machine.up(prefix=["unshare", "--net", "sh", "-c", take, "sh"])
    assert code == 2 and "no /24 network in 10.78.0.0/16 is free" in stderr and "--subnet 10.99.0.0/16" in stderr


@pytest.mark.lab
def test_too_little_disk(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    small = f'mount -t tmpfs -o size=10m,mode=0700 tmpfs {tmp_path}/data && exec "$@"'
    code, stderr = machine.up(prefix=["unshare", "--mount", "sh", "-c", small, "sh"])
    assert code == 5 and "needs 600 MB of disk space" in stderr and "YURT_DATA_HOME" in stderr


@pytest.mark.lab
@pytest.mark.parametrize("subnet", ["10.99.0.0/25", "8.8.0.0/16", "ten", "10.0.0.1/16"])
def test_bad_subnet(machine: Machine, subnet: str) -> None:
    code, stderr = machine.up("--subnet", subnet)
    assert code == 2 and stderr.startswith("yurt: --subnet: ") and "for example: `--subnet 10.99.0.0/16`" in stderr


@pytest.mark.lab
def test_installed_packages_start_no_service() -> None:
    """Debian's invoke-rc.d refuses to start a service during an installation."""
    for service in ("ssh", "munge"):
        with packages.services_held_back() as prefix:
            argv = [*prefix, "/usr/sbin/invoke-rc.d", service, "start"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert "denied execution of start" in done.stdout + done.stderr
    assert "yurt" not in (packages.POLICY.read_text() if packages.POLICY.exists() else "")


@pytest.mark.lab
def test_two_installations_at_the_same_time() -> None:
    """The one that ends first does not remove what prevents the other's services from starting."""

    def refused(_number: int) -> bool:
        with packages.services_held_back() as prefix:
            argv = [*prefix, "/usr/sbin/invoke-rc.d", "ssh", "start"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return "denied execution of start" in done.stdout + done.stderr

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(refused, range(12)))


@pytest.mark.lab
def test_a_policy_left_by_a_killed_install_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    monkeypatch.setattr(packages, "POLICY", policy)
    with packages.services_held_back():
        left = policy.read_text()
    assert not policy.exists()
    policy.write_text(left)
    with packages.services_held_back() as prefix:
        assert prefix == []
    assert not policy.exists()


def test_missing_packages() -> None:
    assert packages.missing(["dpkg", "no-such-package-of-debian"]) == ["no-such-package-of-debian"]


def test_cgroups_of_other_machines() -> None:
    """Debian with systemd mounts some controllers together; a machine with cgroup v2 only has none of these."""
    together = "".join(
        f"cgroup /sys/fs/cgroup/{names} cgroup rw,nosuid,{names} 0 0\n"
        for names in ("cpu,cpuacct", "memory", "freezer", "cpuset", "devices", "net_cls,net_prio")
    )
    found = {tree.options: str(tree.folder) for tree in cgroups.hierarchies(together)}
    assert found["cpu,cpuacct"] == "/sys/fs/cgroup/cpu,cpuacct" and len(found) == 5
    assert cgroups.hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n") == []


def test_labs_with_one_name_do_not_collide(tmp_path: Path) -> None:
    one, two = Instance("default", tmp_path / "a"), Instance("default", tmp_path / "b")
    assert one.tag != two.tag and one.mark != two.mark and one.group != two.group and one.link(0) != two.link(0)
    assert len(one.link(9)) <= 15
