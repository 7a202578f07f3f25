"""The files of a lab host other than Slurm's configuration: accounts, ssh, PAM, modules, pip, dotfiles.

Each function returns a tree of files; hosts overlay them on their root file system.
"""

from __future__ import annotations

import shlex
from importlib.resources import files
from ipaddress import IPv4Network
from pathlib import Path
from urllib.parse import urlsplit

from yurt.lab.cgroups import Limits, hierarchies
from yurt.lab.topology import (
    ALICE,
    CAROL,
    INDEX_PORT,
    WIRE,
    Account,
    ClusterSpec,
    HostSpec,
    outside_addresses,
    wires,
)
from yurt.lab.tree import File, Folder, Link, Tree

SYSTEM_ACCOUNTS = ("root", "daemon", "bin", "sys", "nobody", "sshd", "slurm", "munge", "mysql", "_apt")


def data(name: str) -> str:
    """Return the text of a file in this package, such as boot/init.sh."""
    return files("yurt.lab").joinpath(name).read_text()


def for_all(spec: ClusterSpec, munge_key: bytes, known_hosts: str) -> Tree:
    """Return the layer that all hosts of a cluster share."""
    tree: Tree = {
        "etc/lab/init.sh": File(data("boot/init.sh")),
        "etc/lab/service.sh": File(data("boot/service.sh")),
        "etc/munge": Folder(0o700, "munge"),
        "etc/munge/munge.key": File(munge_key, 0o400, "munge"),
        "etc/ssh/ssh_known_hosts": File(known_hosts),
        "etc/profile.d/yurt-lab.sh": File("export SCRATCH=/lustre/scratch/$USER PROJECT=/lustre/project/$USER\n"),
        "etc/environment-modules/modulespath": File("/opt/modulefiles\n"),
        "opt/python/3.11/bin/python": Link("/usr/bin/python3"),
        "opt/python/3.11/bin/python3": Link("/usr/bin/python3"),
        "opt/modulefiles/python/3.11": File(data("site/modulefiles/python/3.11")),
        "etc/motd": File(f"Welcome to {spec.name}, a cluster of yurt lab.\n"),
        "etc/pip.conf": File(_pip_conf(spec)),
        "etc/uv/uv.toml": File(_uv_toml(spec)),
        "lustre/scratch": Folder(),
        "lustre/project": Folder(),
    }
    for version in ("11.8", "12.1"):
        tree[f"opt/modulefiles/cuda/{version}"] = File(data(f"site/modulefiles/cuda/{version}"))
        tree[f"opt/cuda/{version}/bin/nvcc"] = File(
            f"#!/bin/sh\necho 'Cuda compilation tools, release {version} (stub of yurt lab)'\n", 0o755
        )
        tree[f"opt/cuda/{version}/lib64"] = Folder()
    return tree | _accounts(spec)


def _pip_conf(spec: ClusterSpec) -> str:
    """Return pip's settings. A cluster without an index has an empty file, which hides the one of this machine."""
    if not spec.index:
        return ""
    host = urlsplit(spec.index_url).hostname
    return f"[global]\nindex-url = {spec.index_url}\ntrusted-host = {host}\n"


def _uv_toml(spec: ClusterSpec) -> str:
    return f'[[index]]\nurl = "{spec.index_url}"\ndefault = true\n' if spec.index else ""


def _accounts(spec: ClusterSpec) -> Tree:
    def system_lines(name: str) -> str:
        lines = Path(spec.root, "etc", name).read_text().splitlines(keepends=True)
        return "".join(line for line in lines if name == "group" or line.split(":")[0] in SYSTEM_ACCOUNTS)

    passwd = "".join(f"{each.name}:x:{each.uid}:{each.uid}::/home/{each.name}:/bin/bash\n" for each in spec.accounts)
    group = "".join(f"{each.name}:x:{each.uid}:\n" for each in spec.accounts)
    shadow = "".join(f"{each.name}:*:19000:0:99999:7:::\n" for each in spec.accounts)
    return {
        "etc/passwd": File(system_lines("passwd") + passwd),
        "etc/group": File(system_lines("group") + group),
        "etc/shadow": File(system_lines("shadow") + shadow, 0o640),
    }


def for_login(spec: ClusterSpec, code: str) -> Tree:
    tree: Tree = {
        "etc/lab/sshd_config": File(_sshd_config(spec, login=True)),
        "etc/pam.d/sshd": File(
            "auth required pam_unix.so\naccount required pam_unix.so\n"
            "session required pam_limits.so\nsession optional pam_permit.so\n"
        ),
        "etc/lab/forward.nft": File(data("site/forward.nft")),
        "etc/lab/banner": File("".join(f"* Use of {spec.name} is monitored. Line {n} of 12.\n" for n in range(1, 13))),
    }
    if CAROL in spec.accounts:
        tree["etc/lab/codes"] = File(f"{CAROL.name}:{code}\n", 0o600)
    return tree


def for_node(spec: ClusterSpec) -> Tree:
    """Return the layer of compute nodes. Where they run sshd, it accepts only users with a job on the node."""
    return {
        "etc/lab/sshd_config": File(_sshd_config(spec, login=False)),
        "etc/ssh/sshd_config": File(_sshd_config(spec, login=False)),  # where users look
        "etc/pam.d/sshd": File(
            "auth required pam_permit.so\naccount required pam_unix.so\n"
            "account required pam_slurm_adopt.so action_no_jobs=deny action_unknown=newest\n"
            "session required pam_limits.so\nsession optional pam_permit.so\n"
        ),
    }


def for_ctl(spec: ClusterSpec) -> Tree:
    tree: Tree = {}
    if spec.accounting:
        tree["etc/lab/accounts.sh"] = File(data("site/accounts.sh"))
    if spec.index:
        tree["etc/lab/index_server.py"] = File(data("index_server.py"))
    return tree


def for_host(spec: ClusterSpec, host: HostSpec, block: IPv4Network, limits: Limits, key: str) -> Tree:
    """Return the layer of one host: its name, addresses, role and host key."""
    values: dict[str, str] = {
        "ROLE": host.role,
        "LOWER": spec.root,
        "ADDRESS": f"{spec.address(host)}/{spec.network.prefixlen}",
        "GATEWAY": str(spec.address(spec.login)),
        "ROUTE_OUT": str(int(spec.route_out)),
        "ACCOUNTING": str(int(spec.accounting)),
        "INDEX_PORT": str(INDEX_PORT) if spec.index else "",
        "NODE_SSH": str(int(spec.node_ssh)),
        "WIRES": "",
        "GPUS": str(host.gpus),
        "LIMITS": limits if host.role == "node" else "none",
        "HIERARCHIES": " ".join(tree.options for tree in hierarchies()) if limits == "v1" else "",
    }
    if host.role == "login":
        machine, login = outside_addresses(block, spec, host)
        values |= {"OUTSIDE": f"{login}/30", "GATEWAY": str(machine), "WIRE_NETWORK": str(WIRE)}
        values["WIRES"] = " ".join(str(mine) for _name, mine, _far in wires(spec, host))
    return {
        "etc/hostname": File(host.name + "\n"),
        "etc/hosts": File(_hosts(spec, host)),
        "etc/lab/host.env": File("".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())),
        "etc/lab/host_key": File(key, 0o600),
    }


def _hosts(spec: ClusterSpec, host: HostSpec) -> str:
    lines = ["127.0.0.1 localhost", *(f"{spec.address(each)} {each.name}" for each in spec.hosts)]
    lines += [f"{far} {name}" for name, _mine, far in wires(spec, host)]
    return "\n".join(lines) + "\n"


def _sshd_config(spec: ClusterSpec, *, login: bool) -> str:
    lines = [
        "HostKey /etc/lab/host_key",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin no",
        f"UsePAM {'yes' if spec.node_ssh else 'no'}",
        "AcceptEnv LANG LC_*",
        "Subsystem sftp internal-sftp",
        "UseDNS no",
        "PrintMotd no",
        "MaxStartups 100:30:200",
        f"MaxSessions {50 if spec.accounting else 10}",
        # The post-quantum key exchange costs 0.1 s of CPU per connection, and the lab does not need it.
        "KexAlgorithms curve25519-sha256",
    ]
    if login and not spec.accounting:
        lines.append("Banner /etc/lab/banner")
    if login and CAROL in spec.accounts:
        lines += [
            f"Match User {CAROL.name}",
            "  KbdInteractiveAuthentication yes",
            "  AuthenticationMethods publickey,keyboard-interactive",
        ]
    return "\n".join(lines) + "\n"


def home(spec: ClusterSpec, account: Account, authorized: list[str], private: str, public: str) -> Tree:
    """Return an account's home folder as it is when the lab is created."""
    uid = account.uid
    noisy = not spec.accounting and account == ALICE
    bashrc = f"export CLUSTER={spec.name}\n"
    if noisy:
        bashrc += "echo 'Welcome back! Your quota report:'\necho '  scratch: fine'\necho 'Have a nice day.' >&2\n"
        bashrc += "export SCRATCH=/lustre/scratch/$USER PROJECT=/lustre/project/$USER\n"
    name = account.name
    return {
        name: Folder(0o700, uid),
        f"{name}/.bashrc": File(bashrc, owner=uid),
        f"{name}/.profile": File('[ -n "$BASH_VERSION" ] && [ -f ~/.bashrc ] && . ~/.bashrc\n', owner=uid),
        f"{name}/.ssh": Folder(0o700, uid),
        f"{name}/.ssh/authorized_keys": File("\n".join(authorized) + "\n", 0o600, uid),
        f"{name}/.ssh/id_ed25519": File(private, 0o600, uid),
        f"{name}/.ssh/id_ed25519.pub": File(public + "\n", owner=uid),
    }
