"""Chooses packages from the wheelhouse of a site: wheels there that are preferred to those of package indexes.

uv resolves on this machine, where those wheels are absent. It gets stubs that have their names and their metadata, so
it takes their requirements into account.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path

import msgspec
from packaging import tags
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from yurt.envs import pyproject, requirements, uv_lock
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock, normal
from yurt.envs.target import Target
from yurt.model.env import SiteWheel


def ranks_of(target: Target) -> dict[str, int]:
    """Return the tags of wheels that can be installed on the target; the best one has the lowest number."""

    major, minor = (int(each) for each in target.python_version.split("."))
    own = tags.cpython_tags((major, minor), platforms=target.pip_platforms)
    others = tags.compatible_tags((major, minor), f"cp{major}{minor}", target.pip_platforms)
    return {str(tag): number for number, tag in enumerate([*own, *others])}


def rank_of(file: str, ranks: dict[str, int]) -> int | None:
    """Return the rank of a wheel by its file name; None for one that cannot be installed."""

    try:
        own = parse_wheel_filename(file)[3]
    except InvalidWheelFilename:
        return None
    return min((ranks[str(tag)] for tag in own if str(tag) in ranks), default=None)


PINS = "preferred.txt"
STUBS = "wheelhouse"


class Offer(msgspec.Struct, frozen=True):
    """A wheel of the wheelhouse that can be installed on the target; the lowest `rank` fits best."""

    name: str
    version: str
    rank: int
    wheel: SiteWheel

    @property
    def file(self) -> str:
        return self.wheel.path.rpartition("/")[2]


def offers(wheels: Iterable[SiteWheel], target: Target) -> list[Offer]:
    """Return the wheels that can be installed on the target."""
    ranks = ranks_of(target)
    found: list[Offer] = []
    for wheel in wheels:
        file = wheel.path.rpartition("/")[2]
        rank = rank_of(file, ranks)
        python = HeaderParser().parsestr(wheel.metadata)["Requires-Python"] or ""
        try:
            name, version, _build, _tags = parse_wheel_filename(file)
            usable = rank is not None and target.satisfies(python)
        except (InvalidWheelFilename, InvalidVersion, ValueError):
            continue
        if usable and rank is not None:
            found.append(Offer(str(name), str(version), rank, wheel))
    return found


def names(declared: Declared) -> set[str]:
    """Return the names of the packages that a declaration mentions. A package with declared hashes is left out."""
    texts: list[str] = []
    hashed: set[str] = set()
    for file in declared.files:
        if file == "uv.lock":
            texts += uv_lock.read(declared.text(file)).names
        elif file == "pyproject.toml":
            texts += pyproject.all_dependencies(declared.text(file))
        elif not file.endswith(".toml"):
            lines = [each for each in requirements.read(declared.text(file)) if each.kind == "requirement"]
            texts += [each.value for each in lines]
            hashed |= {_name(each.value) for each in lines if "--hash" in each.text}
    return {_name(each) for each in texts} - hashed - {""}


def write(folder: Path, offered: Sequence[Offer]) -> tuple[Path, Path]:
    """Write stubs, and the versions that uv prefers, the newest first; return the folder and the file."""
    stubs, pins = folder / STUBS, folder / PINS
    stubs.mkdir()
    for each in offered:
        stem = "-".join(each.file.split("-")[:2])
        with zipfile.ZipFile(stubs / each.file, "w") as archive:
            archive.writestr(f"{stem}.dist-info/METADATA", each.wheel.metadata)
            archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
            archive.writestr(f"{stem}.dist-info/RECORD", "")
    newest = sorted(offered, key=lambda each: Version(each.version), reverse=True)
    pins.write_text("".join(f"{line}\n" for line in dict.fromkeys(f"{each.name}=={each.version}" for each in newest)))
    return stubs, pins


def taken(lock: Lock, offered: Sequence[Offer]) -> dict[str, Offer]:
    """Return the best offer for each package of a lock whose version is offered, by name."""
    found: dict[str, Offer] = {}
    for package in lock.packages:
        same = [each for each in offered if each.name == package.name and each.version == package.version]
        if same:
            found[package.name] = min(same, key=lambda each: each.rank)
    return found


def unfit(chosen: Mapping[str, Offer], lock: Lock, target: Target) -> list[Offer]:
    """Return the offers with requirements that the lock does not satisfy.

    uv has seen the metadata of an index for a version that an index has, too.
    """
    versions = {each.name: each.version for each in lock.packages}
    return [each for each in chosen.values() if not _satisfied(each, versions, target)]


def _satisfied(offer: Offer, versions: Mapping[str, str], target: Target) -> bool:
    for line in HeaderParser().parsestr(offer.wheel.metadata).get_all("Requires-Dist", []):
        try:
            required = Requirement(line)
        except InvalidRequirement:
            return False
        if required.marker is not None and not required.marker.evaluate(target.markers):
            continue
        version = versions.get(canonicalize_name(required.name))
        if version is None:
            return False
        try:
            if not required.specifier.contains(Version(version), prereleases=True):
                return False
        except InvalidVersion:  # an address in place of a version
            continue
    return True


def merged(compiled: str, exported: str, offered: Sequence[Offer]) -> str:
    """Return the lines of a resolution with those of a uv.lock for all packages that are not from the wheelhouse."""
    chosen, locked = taken(Lock(compiled), offered), {}
    for line in _blocks(exported):
        locked[_name(line)] = line
    return "".join(line if _name(line) in chosen else locked.get(_name(line), line) for line in _blocks(compiled))


def _blocks(text: str) -> list[str]:
    """Return the requirements of a lock, each with its lines of hashes."""
    return [each for each in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if re.match(r"\w", each)]


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9][\w.-]*", requirement)
    return normal(found[0]) if found else ""
