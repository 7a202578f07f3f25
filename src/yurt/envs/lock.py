"""The exact versions of all packages of an environment, as a requirements file with hashes. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from yurt.envs import requirements

WHEELHOUSE = re.compile(r"^# wheelhouse (\S+) (.+)$", re.MULTILINE)
SHA256 = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})")

PASSWORD = re.compile(r"(?<=://)[^/@\s]+@(?=[^\s/]+)")
"""User name and password in an address."""

TORCH_BACKEND = "# torch-backend: "
"""The beginning of a line of a lock, which env_build.sh reads, too."""


class Package(msgspec.Struct, frozen=True):
    """A package and its version; for a package that is not from an index, the address in place of the version."""

    name: str
    version: str
    wheelhouse: str = ""
    """Its file in the wheelhouse of the site; empty if it is not from there."""


class PackageChange(msgspec.Struct, frozen=True):
    """A package whose version differs; an empty version means that it is absent."""

    name: str
    old: str
    new: str


class Lock(msgspec.Struct, frozen=True):
    """A requirements file: the indexes that the project declares, then each package with its hashes."""

    text: str

    @property
    def packages(self) -> list[Package]:
        house = self.wheelhouse
        names = ((name_of(each.value), _version(each.value)) for each in self._lines())
        return [Package(name, version, house.get(name, "")) for name, version in names]

    @property
    def wheelhouse(self) -> dict[str, str]:
        """The files in the wheelhouse of the site, by the names of their packages."""
        return dict(WHEELHOUSE.findall(self.text))

    @property
    def without_passwords(self) -> Lock:
        """The lock as other machines may have it. A user name for ssh is not secret."""
        lines = (line if "ssh://" in line else PASSWORD.sub("", line) for line in self.text.splitlines(keepends=True))
        return Lock("".join(lines))

    @property
    def digest(self) -> str:
        """The SHA-256 of the text."""

        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def torch_backend(self) -> str:
        """Which builds of PyTorch it has, in the words of uv, such as `cu126`; empty for those of the package index."""
        found = re.search(rf"^{TORCH_BACKEND}(\w+)$", self.text, re.MULTILINE)
        return found[1] if found else ""

    def hashes(self) -> dict[str, frozenset[str]]:
        """Return the SHA-256 of all files of each package, by the package's name."""
        return {name_of(each.value): frozenset(SHA256.findall(each.text)) for each in self._lines()}

    def part(self, keep: Callable[[str], bool]) -> Lock:
        """Return a lock with the packages whose names `keep` accepts, and the same indexes."""
        lines = requirements.read(self.text)
        kept = (each.text for each in lines if each.kind != "requirement" or keep(name_of(each.value)))
        return Lock("".join(f"{each}\n" for each in kept))

    def from_wheelhouse(self, files: Mapping[str, tuple[str, str]]) -> Lock:
        """Return a lock that takes packages from the wheelhouse: path and SHA-256 of each, by name."""
        notes = "".join(f"# wheelhouse {name} {path}\n" for name, (path, _sum) in files.items())
        lines: list[str] = []
        for each in requirements.read(self.text):
            file = files.get(name_of(each.value)) if each.kind == "requirement" else None
            lines.append(f"{each.value} --hash=sha256:{file[1]}" if file else each.text)
        return Lock(notes + "".join(f"{line}\n" for line in lines).replace(" --hash", " \\\n    --hash"))

    def _lines(self) -> Iterator[requirements.Line]:
        return (each for each in requirements.read(self.text) if each.kind == "requirement")


def changes(old: Lock, new: Lock) -> list[PackageChange]:
    """Return the packages whose versions differ, by name."""
    before = {each.name: each.version for each in old.packages}
    after = {each.name: each.version for each in new.packages}
    names = sorted(before.keys() | after.keys())
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in names)
    return [PackageChange(name, one, other) for name, one, other in pairs if one != other]


def conda_packages(export: str) -> list[Package]:
    """Return the packages in the output of `conda list --export`: lines NAME=VERSION=BUILD."""
    words = (line.split("=") for line in export.splitlines() if not line.startswith(("#", "@")))
    return [Package(normal(each[0]), each[1]) for each in words if len(each) == 3]


def normal(name: str) -> str:
    """Return the normal form of a package's name: `Ruamel_YAML` becomes `ruamel-yaml`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """Return the normal form of the name of the package that a requirement names."""
    found = re.match(r"[\w.-]+", requirement)
    return normal(found[0]) if found else requirement


def _version(requirement: str) -> str:
    plain = requirement.partition(";")[0]
    if " @ " in plain:
        return requirement.partition(" @ ")[2].split(" ;")[0].strip()
    return plain.partition("==")[2].strip()
