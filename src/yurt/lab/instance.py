"""Identity of one lab on this machine: its name, state folder, lock and saved state."""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.errors import UnreachableError, UserError

DEFAULT_NAME = "default"


class State(msgspec.Struct, kw_only=True):
    """What a lab saves between two commands (lab.json)."""

    block: str = ""
    linked: bool = False
    limits: str = ""
    slurm: str = ""
    """The version of Slurm, if it is not that of this machine: a key of versions.RELEASES."""
    settings: dict[str, dict[str, str]] = {}
    """By cluster, the settings of slurm.conf that `yurt lab set` changed."""


@dataclass(frozen=True)
class Instance:
    """A lab's identity. `tag` differs for any two state folders, so links and groups never collide."""

    name: str
    folder: Path

    @property
    def tag(self) -> str:
        return hashlib.sha256(str(self.folder).encode()).hexdigest()[:6]

    @property
    def mark(self) -> str:
        """Prefix of the last argument of each host's first process, by which the lab finds its hosts."""
        return f"yurt-lab/{self.name}/{self.tag}/"

    @property
    def group(self) -> str:
        return f"yurt-lab-{self.name}-{self.tag}"

    @property
    def client(self) -> Path:
        """Folder with the keys and the ssh config of the lab's user."""
        return self.folder / "client"

    def link(self, index: int) -> str:
        """Name of this machine's interface to the index-th login host (at most 15 characters)."""
        return f"yl{self.tag}{index}"

    def context_name(self, cluster: str) -> str:
        return cluster if self.name == DEFAULT_NAME else f"{self.name}-{cluster}"

    def save_state(self, state: State) -> None:
        paths.write_private(self.folder / "lab.json", msgspec.json.encode(state))

    def load_state(self) -> State:
        """Return the saved state, or an empty one if there is none."""
        try:
            return msgspec.json.decode((self.folder / "lab.json").read_bytes(), type=State)
        except (FileNotFoundError, msgspec.DecodeError):
            return State()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one yurt brings a lab up, down or into a fault at a time."""
        paths.make_private(self.folder)
        descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UnreachableError(
                    f"lab '{self.name}' is being started, stopped or changed by another yurt process",
                    code="lab-busy",
                    hint="wait until it finishes, then run the command again",
                ) from None
            yield
        finally:
            os.close(descriptor)


def instance(name: str = "") -> Instance:
    """Return the lab of that name (if empty, $YURT_LAB or 'default'). Creates nothing."""
    name = name or os.environ.get("YURT_LAB", "") or DEFAULT_NAME
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", name):
        raise UserError(
            f"invalid lab name '{name}': it must be at most 20 lower-case letters, digits and dashes, "
            "starting with a letter",
            code="usage",
            hint="for example: `--instance class2`",
        )
    return Instance(name, paths.data_home() / "lab" / name)


def parse_subnet(text: str) -> ipaddress.IPv4Network:
    """Parse a private IPv4 network of /24 or larger, from which the lab takes one /24."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        hint = "for example: `--subnet 10.99.0.0/16`"
        raise UserError(f"--subnet: {error}", code="usage", hint=hint) from None
    if not network.is_private or network.prefixlen > 24:
        raise UserError(
            f"--subnet: '{text}' is not a private network of /24 or larger",
            code="usage",
            hint="for example: `--subnet 10.99.0.0/16`",
        )
    return network
