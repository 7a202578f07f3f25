"""The lab's network: a switch per cluster, a link from this machine to each login host, and the wire.

The wire is the switchable link between the two clusters. Only the links to the login hosts are in
this machine's own network namespace. The other end of each is in a host's namespace, so the kernel
removes the link when that host exits.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

from yurt.errors import UserError
from yurt.lab.instance import Instance
from yurt.lab.shell import run, succeeds
from yurt.lab.topology import BETA, ClusterSpec, HostSpec, login_hosts, outside_addresses, wire_addresses


@contextmanager
def addresses_locked() -> Iterator[None]:
    """Hold the lock under which labs on one machine choose their addresses."""
    descriptor = os.open("/run/yurt-lab.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def choose_block(instance: Instance, subnet: IPv4Network, previous: str) -> IPv4Network:
    """Return a /24 of the subnet that nothing else on this machine uses; the previous one if it is free."""
    used = _networks_in_use(instance)
    candidates = list(subnet.subnets(new_prefix=24))
    if previous and IPv4Network(previous).subnet_of(subnet):
        candidates.insert(0, IPv4Network(previous))
    for block in candidates:
        if not any(block.overlaps(network) for network, _device in used):
            return block
    network, device = next((network, device) for network, device in used if subnet.overlaps(network))
    raise UserError(
        f"no /24 network in {subnet} is free for the lab: {device} uses {network}",
        code="lab-address-in-use",
        hint="choose another private network, for example: `yurt lab up --subnet 10.99.0.0/16`",
    )


def lost_addresses(instance: Instance, block: IPv4Network) -> bool:
    """Return whether something else on this machine now uses the block of a lab that has no links.

    A lab has no links if its start was killed early. Existing links keep working even if a wider
    route appears, such as that of a VPN.
    """
    own = {instance.link(index) for index in range(len(login_hosts()))}
    if own & {name for _index, name in socket.if_nameindex()}:
        return False
    return any(block.overlaps(network) for network, _device in _networks_in_use(instance))


def _networks_in_use(instance: Instance) -> list[tuple[IPv4Network, str]]:
    own = {instance.link(index) for index in range(len(login_hosts()))}
    found = []
    for route in json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]) or "[]"):
        device = route.get("dev", "a route")
        if route["dst"] != "default" and device not in own:
            found.append((IPv4Network(route["dst"], strict=False), device))
    return found


def has_interface(pid: int, name: str) -> bool:
    """Return whether the host whose first process is `pid` has a network interface of that name."""
    try:
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    except OSError:
        return False
    return any(line.strip().startswith(name + ":") for line in lines)


def plug_in(fabric: int, hosts: dict[str, int]) -> None:
    """Connect hosts (name -> first process) to their cluster's switch. Skips connected hosts."""
    lines = []
    for name, pid in hosts.items():
        if not has_interface(pid, "eth0"):
            lines.append(f"link add to-{name} type veth peer name eth0 netns {pid}")
            lines.append(f"link set to-{name} master switch up")
    _batch(fabric, lines)


def plug_in_outside(instance: Instance, block: IPv4Network, spec: ClusterSpec, host: HostSpec, pid: int) -> None:
    """Create the link between this machine and a login host if it is missing."""
    if has_interface(pid, "eth1"):
        return
    link = instance.link(login_hosts().index((spec, host)))
    wait_gone(link)
    machine, _login = outside_addresses(block, spec, host)
    lines = [
        f"link add {link} type veth peer name eth1 netns {pid}",
        f"addr add {machine}/30 dev {link}",
        f"link set {link} up",
    ]
    run(["ip", "-batch", "-"], stdin="\n".join(lines) + "\n")


def wait_gone(link: str, *, wait: float = 10) -> None:
    """Wait until the kernel has removed the link of a stopped host; remove it after `wait` seconds."""
    deadline = time.monotonic() + wait
    while link in {name for _index, name in socket.if_nameindex()}:
        if time.monotonic() > deadline:
            succeeds(["ip", "link", "del", link])
            return
        time.sleep(0.01)


def set_outside(pid: int, *, up: bool, gateway: str = "") -> None:
    """Take a login host's link to this machine down or up, at the host's end.

    This machine's end stays up without carrier and keeps its route, so packets for the lab never
    leave through another interface.
    """
    lines = [f"link set eth1 {'up' if up else 'down'}"]
    if up and gateway:
        lines.append(f"route replace default via {gateway}")
    _batch(pid, lines)


def look_up_again(address: str) -> None:
    """End this machine's search for a host that was cut off; its failure would be the answer to new connections."""
    run(["ip", "neighbour", "flush", "to", address])


def wire(alpha_login: int, beta_logins: dict[str, int]) -> None:
    """Connect alpha's login host with each of beta's (name -> first process). Skips existing links."""
    for index, host in enumerate(BETA.of_role("login")):
        pid = beta_logins.get(host.name)
        if pid is None or has_interface(alpha_login, f"wire{index}"):
            continue
        alpha_end, beta_end = wire_addresses(index)
        _batch(
            alpha_login,
            [
                f"link add wire{index} type veth peer name wire{index} netns {pid}",
                f"addr add {alpha_end}/30 dev wire{index}",
                f"link set wire{index} up",
            ],
        )
        _batch(pid, [f"addr add {beta_end}/30 dev wire{index}", f"link set wire{index} up"])


def unwire(alpha_login: int) -> None:
    """Remove the links between the clusters."""
    for index in range(len(BETA.of_role("login"))):
        if has_interface(alpha_login, f"wire{index}"):
            _batch(alpha_login, [f"link del wire{index}"])


def wired(alpha_login: int) -> bool:
    return has_interface(alpha_login, "wire0")


def _batch(pid: int, lines: list[str]) -> None:
    if lines:
        run(["nsenter", "--net", "-t", str(pid), "ip", "-batch", "-"], stdin="\n".join(lines) + "\n")
