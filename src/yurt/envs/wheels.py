"""Downloads the wheels of a lock for a site without internet, into a cache folder.

uv chooses the files for the Python and the platform of the site. They are downloaded here and not by `pip download`,
which would build the metadata of packages that have source code only, and which evaluates markers for its own Python.

A file is stored as FOLDER/SHA256/NAME. A file that has this name is complete.
"""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from yurt.envs import indexes, repository, requirements, resolve, sdist, uv_program
from yurt.envs.download import Downloader
from yurt.envs.lock import Lock, normal
from yurt.envs.target import Target
from yurt.envs.wheelhouse import rank_of, ranks_of
from yurt.errors import UserError
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.site_words import FileName

SUM = re.compile("[0-9a-f]{64}")

MOST_ROUNDS = 4
"""Build requirements can have build requirements that have source code only; this many times."""


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a package in the cache."""

    name: str
    file: str
    sha256: str
    size: int
    path: Path
    source: bool = False
    """Whether it is source code, from which a wheel is built on the site."""
    build: bool = False
    """Whether it is only needed to build other packages from their source code."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a package that uv chose for the target, and its address or path."""

    name: str
    file: str
    sha256: str
    place: str

    @property
    def source(self) -> bool:
        return not self.file.endswith(".whl")


def fetch(
    lock: Lock, target: Target, folder: Path, *, builds: Collection[str] = (), watch: Watch = unwatched
) -> list[Wheel]:
    """Return a file for each package of a lock, and what is needed to build those that have source code only.

    No code of a package runs here, except of those in `builds`.

    Downloads only files that are not in the folder. Several processes may fetch into one folder. UserError: a package
    has no file that can be used, or a file does not match its hash. UnreachableError: a host cannot be reached; files
    that are complete stay, so a retry continues.
    """
    record = folder / "lists" / f"{_key(lock, target)}.json"
    if known := _recorded(record, folder):
        return known
    found: dict[str, Wheel] = {}
    pip = indexes.of_pip()
    download = Downloader(folder, pip, _passwords(pip, lock))
    wanted, rounds = lock, 0
    while True:
        made = _fetched(choose(wanted, target, pip, folder, builds), download, folder, watch)
        new = [each for each in made if each.sha256 not in found]
        found |= {each.sha256: msgspec.structs.replace(each, build=rounds > 0) for each in new}
        sources = [each for each in new if each.source]
        if not sources:
            break
        rounds += 1
        if rounds > MOST_ROUNDS:
            raise _unbuildable(sources[0].name, "its build requirements have source code only, too")
        wanted = _build_requirements(sources, target, pip, builds)
        if not wanted.packages:
            break
    listed = list(found.values())
    _write(record, listed)
    return listed


def choose(
    lock: Lock, target: Target, pip: indexes.Settings, cache: Path, builds: Collection[str] = ()
) -> list[Choice]:
    """Return the best file of each package for the target: a wheel, or source code if there is no wheel.

    The source code of a package in a repository is packed into the cache.
    """
    platform = ("--python-version", target.python, "--python-platform", target.uv_platform)
    options = ("--no-deps", "--no-header", "--format", "pylock.toml", "--generate-hashes")
    # The hash of a locked file says that it is the right one, whichever index has it.
    settings = indexes.for_uv(pip=pip)
    variables = settings.variables | {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    with uv_program.temporary("wheels") as name:
        Path(name, "requirements.txt").write_text(lock.text)
        torch = ["--torch-backend", lock.torch_backend] if lock.torch_backend else []
        command = ["pip", "compile", "requirements.txt", *options, *platform, *settings.options, *torch]
        done = uv_program.run(command, folder=Path(name), variables=variables, inert=True)
        if done.code:
            raise resolve.failed(done.err, "the lock", target)
        packages: list[dict[str, Any]] = tomllib.loads(done.out).get("packages", [])
        hashes, ranks = lock.hashes(), ranks_of(target)
        return [
            _packed(each, cache, builds)
            if "vcs" in each
            else _choice(each, hashes.get(normal(each["name"]), frozenset()), ranks, Path(name))
            for each in packages
        ]


def _packed(package: dict[str, Any], cache: Path, builds: Collection[str]) -> Choice:
    """Return the source code of a package that is in a repository."""
    name, vcs = normal(package["name"]), package["vcs"]
    if vcs.get("type") != "git":
        raise _unbuildable(name, "it is in a repository of another kind than git")
    revision = repository.Revision(vcs["url"], vcs["commit-id"], vcs.get("subdirectory", ""))
    try:
        path = repository.pack(revision, cache, name, may_build=name in builds)
    except ValueError as error:
        raise _unbuildable(name, str(error)) from None
    return Choice(name=name, file=path.name, sha256=path.parent.name, place=str(path))


def _choice(package: dict[str, Any], hashes: frozenset[str], ranks: dict[str, int], folder: Path) -> Choice:
    name = normal(package["name"])
    listed = [each for each in (*package.get("wheels", []), package.get("archive"), package.get("sdist")) if each]
    named = [each for each in (_file(name, file, folder) for file in listed) if each is not None]
    found = [each for each in named if _rank(each, ranks) is not None]
    if not found:
        raise _unbuildable(name, "it has neither a wheel for this Python and platform nor source code")
    locked = [each for each in found if each.sha256 in hashes or not hashes]
    if not locked:
        raise UserError(
            f"the package index has another file than the locked one for {name}",
            code="config-invalid",
            hint="if the index changed on purpose, resolve the packages again",
        )
    return min(locked, key=lambda each: _rank(each, ranks) or 0)


def _file(name: str, file: dict[str, Any], folder: Path) -> Choice | None:
    """Return a file as it is kept in the cache; None if its name or its hash could lead to another place."""
    place = file.get("url") or str((folder / file["path"]).resolve())
    label = unquote(place.partition("#")[0].partition("?")[0].rpartition("/")[2])
    kept, sha256 = FileName.read(file.get("name", label)), file.get("hashes", {}).get("sha256", "")
    return Choice(name=name, file=str(kept), sha256=sha256, place=place) if kept and SUM.fullmatch(sha256) else None


def _rank(choice: Choice, ranks: dict[str, int]) -> int | None:
    """Return the rank of a file, source code last; None for a wheel that cannot be installed."""
    return len(ranks) if choice.source else rank_of(choice.file, ranks)


def _passwords(pip: indexes.Settings, lock: Lock) -> dict[str, tuple[str, str]]:
    """Return user names and passwords by origin, from the indexes that uv and pip use."""
    declared = [each.value for each in requirements.read(lock.text) if each.kind == "index"]
    own = [word for name in indexes.OWN for word in re.split(r"[\s,]", os.environ.get(name, ""))]
    named = [re.sub(r"^[\w.-]+=(?=\w+://)", "", word) for word in own]
    return indexes.passwords([pip.index, *pip.extra, *pip.find_links, *declared, *named])


def _fetched(choices: Sequence[Choice], download: Downloader, folder: Path, watch: Watch) -> list[Wheel]:
    """Download the files that are not in the cache, several at a time; return all."""
    paths = {each.sha256: folder / each.sha256 / each.file for each in choices}
    absent = [each for each in choices if not paths[each.sha256].exists()]
    if absent:
        watch(Event("downloading packages", 0, len(absent)))
        for done, _path in enumerate(download.all([(each.place, each.sha256, each.file) for each in absent]), 1):
            watch(Event("downloading packages", done, len(absent)))
    return [
        Wheel(
            name=each.name,
            file=each.file,
            sha256=each.sha256,
            size=paths[each.sha256].stat().st_size,
            path=paths[each.sha256],
            source=each.source,
        )
        for each in choices
    ]


def _build_requirements(
    sources: Sequence[Wheel], target: Target, pip: indexes.Settings, builds: Collection[str]
) -> Lock:
    """Return the versions of what builds these packages."""
    lines: list[str] = []
    for each in sources:
        try:
            lines += sdist.build_requirements(each.path)
        except ValueError as error:
            raise _unbuildable(each.name, str(error)) from None
    names = ", ".join(each.name for each in sources)
    return resolve.compile_lines(sorted(set(lines)), target, f"the build of {names}", pip, builds)


def _unbuildable(name: str, reason: str) -> UserError:
    return UserError(
        f"'{name}' cannot be sent to a site without internet: {reason}",
        code="config-invalid",
        hint=f"choose a version of `{name}` that has a wheel",
    )


def _key(lock: Lock, target: Target) -> str:
    import hashlib

    return hashlib.sha256(msgspec.json.encode([lock.digest, target])).hexdigest()[:32]


def _recorded(record: Path, folder: Path) -> list[Wheel]:
    """Return the files of an earlier `fetch` of the same lock if all of them are still in the cache."""
    try:
        rows = msgspec.json.decode(record.read_bytes(), type=list[dict[str, Any]])
        known = [Wheel(**row, path=folder / row["sha256"] / row["file"]) for row in rows]
        return known if all(each.path.stat().st_size == each.size for each in known) else []
    except (OSError, TypeError, KeyError, msgspec.DecodeError):
        return []


def _write(record: Path, wheels: Sequence[Wheel]) -> None:
    from yurt import private

    rows = [{name: value for name, value in msgspec.structs.asdict(each).items() if name != "path"} for each in wheels]
    private.make_folder(record.parent)
    with tempfile.NamedTemporaryFile(dir=record.parent, delete=False) as file:
        file.write(msgspec.json.encode(rows))
    Path(file.name).rename(record)
