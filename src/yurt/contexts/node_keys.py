"""Host keys of a node, read through a job on it, so that ssh never accepts an unknown one."""

from __future__ import annotations

import re

from yurt.model.site_words import NodeName

READ = "cat /etc/ssh/ssh_host_*_key.pub; ssh-keyscan -T 3 127.0.0.1 $(hostname -I) 2> /dev/null | sort -u; :"
"""Prints the host keys of the node's sshd, on the node itself: those of the usual files, and those that it shows."""

KEY = re.compile(r"(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+")


def known_hosts(node: NodeName, printed: bytes) -> bytes:
    """Return the lines about a node for a file of known hosts, from what READ printed; empty if there are none."""
    found = dict.fromkeys(KEY.findall(printed.decode(errors="replace")))
    return "".join(f"{node} {key}\n" for key in found).encode()
