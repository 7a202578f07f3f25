"""Writes the files of a cluster's hosts into the lab's state folder.

Can be interrupted anywhere and repeated; unchanged files are not written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from pathlib import Path

from yurt.lab import host_files, keys, slurm_files, tree
from yurt.lab.cgroups import Limits
from yurt.lab.index import Index
from yurt.lab.instance import Instance
from yurt.lab.shell import run
from yurt.lab.topology import CLUSTERS, NODE_DISK_MB, SHARED, Account, ClusterSpec, HostSpec, alias


def write(
    instance: Instance, spec: ClusterSpec, block: IPv4Network, limits: Limits, settings: Mapping[str, str]
) -> None:
    """Write the folder from which `boot/fabric.sh` and `boot/host.sh` build the cluster."""
    folder = instance.folder / spec.name
    layers = folder / "layers"
    owners = tree.people(spec.root)
    munge_key = keys.munge_key(folder / "keys" / "munge")
    code = keys.code(instance.client / "carol.code")
    tree.write(layers / "all", host_files.for_all(spec, munge_key, _known_hosts(instance, spec)), owners)
    tree.write(layers / "login", host_files.for_login(spec, code), owners)
    tree.write(layers / "node", host_files.for_node(spec), owners)
    tree.write(layers / "ctl", host_files.for_ctl(spec), owners)
    for host in spec.hosts:
        key = (folder / "keys" / host.name).read_text()
        tree.write(layers / host.name, host_files.for_host(spec, host, block, limits, key), owners)
        tree.write(folder / "hosts" / host.name, _FOLDERS, owners)
    write_slurm(instance, spec, limits, settings)
    for account in spec.accounts:
        tree.write(folder / "skel" / "home", _home(instance, spec, account))
        for name in ("scratch", "project"):
            tree.write(folder / "skel" / name, {account.name: tree.Folder(0o700, account.uid)})
    tree.write(
        folder / "state", {"slurmctld": tree.Folder(0o700, "slurm"), "mysql": tree.Folder(0o700, "mysql")}, owners
    )
    if spec.index:
        Index(folder / "index").create()
    for name, size in [*SHARED.items(), *((node.name, NODE_DISK_MB) for node in spec.of_role("node"))]:
        _make_disk(folder / "images" / f"{name}.img", size)


def write_slurm(instance: Instance, spec: ClusterSpec, limits: Limits, settings: Mapping[str, str]) -> None:
    """Write the folder /etc/slurm, which all hosts of the cluster share."""
    tree.write(instance.folder / spec.name / "slurm", _slurm(spec, limits, settings), tree.people(spec.root))


_FOLDERS: tree.Tree = {
    "rw": tree.Folder(),
    "root": tree.Folder(),
    "log": tree.Folder(owner="slurm"),
    "spool": tree.Folder(),
}


def make_keys(instance: Instance) -> None:
    """Create all keys of both clusters. Each cluster's files contain the other's public keys, so keys come first."""
    for spec in CLUSTERS.values():
        for host in spec.hosts:
            host_key(instance, spec, host)
        for account in spec.accounts:
            _account_key(instance, spec, account)


def host_key(instance: Instance, spec: ClusterSpec, host: HostSpec) -> str:
    """Return a host's public key as `TYPE KEY`, the form known_hosts files use."""
    line = keys.ssh_key(instance.folder / spec.name / "keys" / host.name, f"root@{host.name}")
    return " ".join(line.split()[:2])


def _account_key(instance: Instance, spec: ClusterSpec, account: Account) -> tuple[Path, str]:
    path = instance.folder / spec.name / "keys" / f"user-{account.name}"
    return path, keys.ssh_key(path, f"{account.name}@{spec.name}")


def _known_hosts(instance: Instance, spec: ClusterSpec) -> str:
    """List the cluster's own hosts, and the other cluster's login hosts by the names used across the link."""
    lines = [f"{host.name},{spec.address(host)} {host_key(instance, spec, host)}" for host in spec.hosts]
    for other in CLUSTERS.values():
        if other != spec:
            lines += [f"{alias(other, host)} {host_key(instance, other, host)}" for host in other.of_role("login")]
    return "\n".join(lines) + "\n"


def _slurm(spec: ClusterSpec, limits: Limits, settings: Mapping[str, str]) -> tree.Tree:
    files: tree.Tree = {
        "slurm.conf": tree.File(slurm_files.slurm_conf(spec, limits, settings)),
        "cgroup.conf": tree.File(slurm_files.cgroup_conf(limits)),
        "gres.conf": tree.File(slurm_files.gres_conf(spec)),
    }
    for name in ("prolog.sh", "task_prolog.sh", "epilog.sh"):
        files[name] = tree.File(host_files.data(f"site/{name}"), 0o755)
    if spec.accounting:
        files["slurmdbd.conf"] = tree.File(slurm_files.slurmdbd_conf(spec), 0o600, "slurm")
    else:
        files["job_submit.lua"] = tree.File(host_files.data("site/job_submit.lua"))
    return files


def _home(instance: Instance, spec: ClusterSpec, account: Account) -> tree.Tree:
    """Return an account's home folder, which accepts logins from this machine and from clusters with the account."""
    authorized = [keys.ssh_key(instance.client / account.name, f"{account.name}@laptop")]
    authorized += [_account_key(instance, each, account)[1] for each in CLUSTERS.values() if account in each.accounts]
    path, public = _account_key(instance, spec, account)
    return host_files.home(spec, account, authorized, path.read_text(), public)


def _make_disk(image: Path, size_mb: int) -> None:
    """Create a sparse file with a file system in it. Atomic; does nothing if the file exists."""
    if image.exists():
        return
    image.parent.mkdir(exist_ok=True)
    aside = image.with_suffix(".new")
    aside.unlink(missing_ok=True)
    with aside.open("wb") as stream:
        stream.truncate(size_mb << 20)
    options = ["-q", "-F", "-m", "0", "-J", "size=4", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]
    run(["mkfs.ext4", *options, str(aside)])
    aside.rename(image)
