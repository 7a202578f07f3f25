"""The user's side of a lab: ssh keys, a separate ssh config, and contexts for the clusters.

~/.ssh is never read or written.
"""

from __future__ import annotations

import shlex
from ipaddress import IPv4Network
from pathlib import Path

from yurt.config import contexts, facts, paths
from yurt.errors import UserError
from yurt.lab import cluster_files, keys
from yurt.lab.instance import Instance
from yurt.lab.topology import ALICE, CLUSTERS, ClusterSpec, alias, outside_addresses
from yurt.model.context import Context


def make_keys(instance: Instance) -> None:
    """Create the ssh keys of the lab's accounts on this machine, and carol's code (her second factor)."""
    paths.make_private(instance.client)
    for account in {account for spec in CLUSTERS.values() for account in spec.accounts}:
        keys.ssh_key(instance.client / account.name, f"{account.name}@laptop")
        for name in (account.name, account.name + ".pub"):
            paths.hand_over(instance.client / name)
    keys.code(instance.client / "carol.code")


def write_ssh_files(instance: Instance, block: IPv4Network) -> None:
    paths.write_private(instance.client / "known_hosts", known_hosts(instance).encode())
    paths.write_private(instance.client / "ssh_config", ssh_config(instance, block).encode())


def ssh_config(instance: Instance, block: IPv4Network) -> str:
    """Return an ssh config with an alias for each host; `-l bob` selects another account and its key."""
    folder = str(instance.client)
    quoted = shlex.quote(f"{folder}/ssh_config").replace("%", "%%")
    jump = f"ssh -F {quoted} -l %r -W %h:%p"  # ProxyJump does not quote the path of this file
    lines = [
        f"# Written by `yurt lab up` for lab '{instance.name}'. Usage: ssh -F {folder}/ssh_config alpha",
        "Host *",
        f"  User {ALICE.name}",
        f'  IdentityFile "{folder.replace("%", "%%")}/%r"',
        "  IdentitiesOnly yes",
        f'  UserKnownHostsFile "{folder.replace("%", "%%")}/known_hosts"',
        "  StrictHostKeyChecking yes",
        "  ConnectTimeout 15",
    ]
    for spec in CLUSTERS.values():
        for host in spec.of_role("login"):
            _machine, login = outside_addresses(block, spec, host)
            lines += [*_entry(alias(spec, host)), f"  HostName {login}"]
        if spec.node_ssh:
            for host in spec.of_role("node"):
                lines += [*_entry(alias(spec, host)), f"  HostName {host.name}", f"  ProxyCommand {jump} {spec.name}"]
    return "\n".join(lines) + "\n"


def _entry(name: str) -> list[str]:
    return [f"Host {name}", f"  HostKeyAlias {name}"]


def known_hosts(instance: Instance) -> str:
    lines = []
    for spec in CLUSTERS.values():
        for host in (*spec.of_role("login"), *spec.of_role("node")):
            lines.append(f"{alias(spec, host)} {cluster_files.host_key(instance, spec, host)}")
    return "\n".join(lines) + "\n"


def check_contexts(instance: Instance, specs: list[ClusterSpec]) -> None:
    """Raise UserError if a context of the lab would replace one of the user's."""
    existing = contexts.load(_file()).contexts
    for spec in specs:
        name = instance.context_name(spec.name)
        if name in existing and existing[name].lab != instance.name:
            raise UserError(
                f"context '{name}' already exists in {_file()} and does not belong to this lab",
                code="context-exists",
                hint="rename your context, or give the lab another name, for example: `yurt lab up --instance mylab`",
            )


def write_contexts(instance: Instance, specs: list[ClusterSpec]) -> list[str]:
    """Add or update the lab's contexts in contexts.yaml; return their names."""
    written = [_context(instance, spec) for spec in specs]
    contexts.put(_file(), written)
    return [context.name for context in written]


def remove_contexts(instance: Instance, specs: list[ClusterSpec]) -> None:
    """Remove this lab's contexts from contexts.yaml; a user's context of the same name stays."""
    existing = contexts.load(_file()).contexts
    names = [instance.context_name(spec.name) for spec in specs]
    own = [name for name in names if name in existing and existing[name].lab == instance.name]
    contexts.remove(_file(), own)
    for name in own:
        facts.forget(name)


def _context(instance: Instance, spec: ClusterSpec) -> Context:
    return Context(
        name=instance.context_name(spec.name),
        type="slurm",
        slurm_url=f"{ALICE.name}@{spec.name}",
        ssh_options=("-F", str(instance.client / "ssh_config")),
        storage_dir="/lustre/scratch/alice",
        partition="main",
        account="lab" if spec.accounting else None,
        lab=instance.name,
    )


def _file() -> Path:
    return contexts.default_file()
