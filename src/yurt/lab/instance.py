"""One lab among several on a machine: its name, its state folder, its lock, what it remembers."""

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


class Memory(msgspec.Struct, kw_only=True):
    """What a lab remembers between two commands (lab.json)."""

    block: str = ""
    linked: bool = False
    limits: str = ""
    settings: dict[str, dict[str, str]] = {}
    """Lines of slurm.conf that were changed, by cluster."""


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
        """Prefix of the mark that the first process of each of this lab's hosts carries."""
        return f"yurt-lab/{self.name}/{self.tag}/"

    @property
    def group(self) -> str:
        return f"yurt-lab-{self.name}-{self.tag}"

    @property
    def client(self) -> Path:
        """Keys and ssh config for the person who uses the lab."""
        return self.folder / "client"

    def link(self, index: int) -> str:
        """Name, on this machine, of the link to the index-th login host (15 characters at most)."""
        return f"yl{self.tag}{index}"

    def context_name(self, cluster: str) -> str:
        return cluster if self.name == DEFAULT_NAME else f"{self.name}-{cluster}"

    def remember(self, memory: Memory) -> None:
        paths.write_private(self.folder / "lab.json", msgspec.json.encode(memory))

    def recall(self) -> Memory:
        try:
            return msgspec.json.decode((self.folder / "lab.json").read_bytes(), type=Memory)
        except (FileNotFoundError, msgspec.DecodeError):
            return Memory()

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
                    f"lab '{self.name}' is being brought up or down by another yurt",
                    code="lab-busy",
                    hint="wait for it, then run the command again",
                ) from None
            yield
        finally:
            os.close(descriptor)


def instance(name: str = "") -> Instance:
    """The lab of that name ($YURT_LAB, else 'default'). Nothing is created."""
    name = name or os.environ.get("YURT_LAB", "") or DEFAULT_NAME
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", name):
        raise UserError(
            f"'{name}' is no name for a lab: up to 20 lower-case letters, digits and dashes, a letter first",
            code="usage",
            hint="for example: yurt lab up --instance class2",
        )
    return Instance(name, paths.data_home() / "lab" / name)


def parse_subnet(text: str) -> ipaddress.IPv4Network:
    """A private IPv4 network of /24 or wider, from which the lab takes one /24."""
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise UserError(f"--subnet: {error}", code="usage", hint="for example: --subnet 10.99.0.0/16") from None
    if not network.is_private or network.prefixlen > 24:
        raise UserError(
            f"--subnet: {text} is not a private network of /24 or wider",
            code="usage",
            hint="for example: --subnet 10.99.0.0/16",
        )
    return network
