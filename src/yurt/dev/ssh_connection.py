"""Connects ssh to the node of a dev node: finds the way, and makes its host key known before ssh sees it.

The host keys are read through the job, so ssh never accepts an unknown one.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Literal

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import contexts, paths
from yurt.contexts import connect, node_keys
from yurt.dev import keys, shortcut, ssh_config
from yurt.dev.ask import ASK, ask
from yurt.dev.desks import ssh_name
from yurt.errors import RefusedError, UnreachableError
from yurt.model.context import Context
from yurt.model.progress import patience
from yurt.model.site_words import NodeName, SitePath, printable, shown
from yurt.store import Entry

Way = Literal["here", "node", "job"]

TRY = 30
"""Seconds that a first connection to a node may take."""


COMMAND = 16_000
"""Characters that the command of a node's sshd may have."""

SERVE = (
    'lock=${2%/ssh/*}/lock; [ ! -e "$lock" ] || ! flock -n "$lock" true 2> /dev/null || exit 75; '
    'grep -qs "^$1" "$2" || for pause in 0 2; do'
    ' sleep $pause; sh -c "$3" sh "$4" "$5" < /dev/null > /dev/null && break; done; echo yurt: here >&2; exec '
)
"""Serves one connection, if the holder is alive: it locks a file for as long as it is. If this machine's key is not
authorized any more, the holder authorizes it first.

The second attempt is for a folder that was wiped: the holder makes its files again.
"""


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """How ssh reaches a dev node while it is on this node."""

    run: str
    job: str
    node: str
    restarts: int
    way: Way
    sshd: str
    """The sh command on the node that serves one connection."""
    folder: str
    """The folder of the dev node on the node's own disk."""
    workspace: str


def link(entry: Entry, name: str) -> Link:
    """Return how ssh reaches a running dev node; its host key is known and this machine's key is authorized there.

    No request is sent if ssh has reached the same node before; the command of `argv` authorizes again if needed.
    RefusedError: ssh cannot reach it.
    """
    place = contexts.site(entry.run.context)
    known = _saved(name)
    if known is not None and _same(known, entry) and _way(place) in (known.way, "node") and _is_complete(known, name):
        return known
    info = ask(entry, {"do": "info"})
    sshd, host_key = str(info.get("sshd") or ""), str(info.get("host_key") or "")
    if not printable(sshd, COMMAND) or not node_keys.KEY.fullmatch(host_key):
        raise RefusedError(
            f"ssh cannot reach dev node '{name}': its node has no sshd program",
            code="ssh-failed",
            hint=f"use `yurt dev ssh{'' if name == 'default' else ' ' + name}` instead",
        )
    ask(entry, _authorize())
    status = entry.status
    found = Link(
        run=entry.run.id,
        job=status.job,
        node=status.node,
        restarts=status.restarts,
        way=_way(place),
        sshd=sshd,
        folder=str(SitePath(str(info.get("folder")), entry.run.context)),
        workspace=str(SitePath(str(info.get("workspace")), entry.run.context)),
    )
    try:
        encoded = msgspec.json.encode(found)
    except UnicodeEncodeError:
        raise _no_ssh(entry, name, "the path of its workspace is not UTF-8") from None
    if found.way == "node":
        _try_node(entry, found, name)
    paths.write_private(ssh_config.known_hosts(name), f"{ssh_name(name)} {host_key}\n".encode())
    paths.write_private(_file(name), encoded)
    return found


def argv(entry: Entry, found: Link, name: str) -> list[str]:
    """Return the program that connects its standard streams to the ssh server of a dev node.

    It becomes the short way of the next connections.
    """
    (placement,) = entry.placements
    runner = connect.named_backend(entry.run.context).exec
    key, file = " ".join(keys.public_key().split()[:2]), f"{found.folder}/ssh/authorized_keys"
    request = msgspec.json.encode(_authorize()).decode()
    asking = "; ".join(ASK.splitlines())  # a login shell may be csh, which accepts no line end in quotes
    words = ["sh", "-c", SERVE + found.sshd, "sh", key, file, asking, placement.folder, request]
    command = shlex.join(words)
    if found.way == "node":
        node = _node(entry, found, name)
        program = runner.hop(node, _node_hosts(name), command, prompt=True, share=f"{found.run} {found.restarts}")
    else:
        program = runner.relay(placement, command)
    shortcut.save(name, runner.direct(shortcut.READY, placement.folder), where(entry, found), program)
    return program


def where(entry: Entry, found: Link) -> str:
    """Return the node of a dev node, for a sentence."""
    return "this machine" if found.way == "here" else f"{shown(found.node)} of {entry.run.context}"


def forget_others(entry: Entry, name: str) -> None:
    """Let yurt find the dev node at the next connection, if the last one was to another start of it."""
    known = _saved(name)
    if known is None or not _same(known, entry):
        shortcut.forget(name)


def _authorize() -> dict[str, str]:
    return {"do": "authorize", "key": keys.public_key()}


def _way(place: Context) -> Way:
    if kind_of(place.type).here:
        return "here"
    return "job" if place.dev_sshd else "node"


def _try_node(entry: Entry, found: Link, name: str) -> None:
    """Read the host keys of the node through the job, and log in to it once. RefusedError if that fails."""
    (placement,) = entry.placements
    node = _node(entry, found, name)
    runner = connect.named_backend(entry.run.context).exec
    asked = runner.ask(placement, ["sh", "-c", node_keys.READ])
    lines = node_keys.known_hosts(node, asked.out)
    reason = "its host keys cannot be read"
    if lines:
        paths.write_private(_node_hosts(name), lines)
        command = runner.hop(node, _node_hosts(name), "true", prompt=False)
        try:
            with patience(f"{node} of {entry.run.context} to respond", TRY):
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TRY
                )
        except subprocess.TimeoutExpired:
            raise UnreachableError(
                f"{entry.run.context}: the connection to {node} timed out", code="ssh-timeout"
            ) from None
        if done.returncode == 0:
            return
        errors = done.stderr.strip().splitlines()
        reason = errors[-1].strip() if errors else f"exit code {done.returncode}"
    raise _no_ssh(entry, name, f"node {node} of {entry.run.context} accepts no ssh ({reason})")


def _node(entry: Entry, found: Link, name: str) -> NodeName:
    node = NodeName.read(found.node)
    if node is None:  # such as n[1-2]
        raise _no_ssh(entry, name, f"{shown(found.node)} of {entry.run.context} is not the name of a node")
    return node


def _no_ssh(entry: Entry, name: str, why: str) -> RefusedError:
    return RefusedError(
        f"ssh cannot reach dev node '{name}': {why}",
        code="ssh-failed",
        hint="if the site allows an sshd of your own inside your job, set `dev_sshd: true` with"
        f" `yurt context edit {entry.run.context}`; `yurt dev ssh` works without it",
    )


def _same(known: Link, entry: Entry) -> bool:
    status = entry.status
    return (known.run, known.job, known.node, known.restarts) == (
        entry.run.id,
        status.job,
        status.node,
        status.restarts,
    )


def _is_complete(known: Link, name: str) -> bool:
    """Return whether the host keys are there that ssh needs."""
    return ssh_config.known_hosts(name).exists() and (known.way != "node" or _node_hosts(name).exists())


def _saved(name: str) -> Link | None:
    try:
        return msgspec.json.decode(_file(name).read_bytes(), type=Link)
    except (OSError, msgspec.MsgspecError):
        return None


def _file(name: str) -> Path:
    return keys.folder() / f"link-{name}.json"


def _node_hosts(name: str) -> Path:
    return keys.folder() / f"node_hosts-{name}"
