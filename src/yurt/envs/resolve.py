"""Resolves the packages that a project declares to exact versions, for the Python and the platform of a site.

Runs uv on this machine. Conda environments are not resolved here: conda solves them on the site.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from yurt.envs import (
    addresses,
    conda_file,
    failures,
    indexes,
    inert_python,
    pyproject,
    requirements,
    uv_config,
    uv_program,
    wheelhouse,
)
from yurt.envs.declared import VARIABLE, Declared
from yurt.envs.lock import SHA256, TORCH_BACKEND, Lock, name_of, normal
from yurt.envs.target import Target
from yurt.errors import DownloadError, UnconfirmedError, UserError, YurtError
from yurt.model.progress import Event, Watch, unwatched

if TYPE_CHECKING:
    from yurt.envs.wheelhouse import Offer


IGNORED = ("--prefer-binary", "--use-feature", "--pre", "--trusted-host", "--no-binary", "--only-binary")
"""Options that uv rejects or ignores in a file, of which `yurt.envs.resolve` passes on two; and those that decide
whether uv runs the code of a package: a line `--no-binary NAME` is stronger than the option `--no-build`."""


def installable(declared: Declared) -> dict[str, bytes]:
    """Return the files by their path. Requirements files have no comments; all other files keep their text."""
    return {name: _cleaned(declared, name).encode() for name in declared.files}


def _cleaned(declared: Declared, name: str) -> str:
    text = declared.text(name)
    if name == "pyproject.toml":
        return _alone(text)
    if name.endswith(".toml") or name == "uv.lock":
        return text
    if declared.kind == "conda" and name == declared.title:
        return _conda(text) if declared.left_out else text
    return "".join(f"{_known(each)}\n" for each in requirements.read(text) if _is_kept(each))


def _alone(text: str) -> str:
    """Return a pyproject.toml without what uv would look for on this machine: members of a workspace, local packages
    and indexes in relative folders. Unchanged if there is none."""
    tables = pyproject.parsed(text)
    tool = tables.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    if not isinstance(tool, dict) or not isinstance(uv, dict):
        return text
    kept = uv_config.without_relative({name: value for name, value in uv.items() if name != "workspace"})
    local = pyproject.read(text).local
    if isinstance(sources := uv.get("sources"), dict) and local:
        kept["sources"] = {name: source for name, source in sources.items() if name not in local}
    return text if kept == uv else uv_config.written({**tables, "tool": {**tool, "uv": kept}})


def _is_kept(line: requirements.Line) -> bool:
    return line.kind != "local" and line.option not in IGNORED


def _known(line: requirements.Line) -> str:
    """Return a line for uv, which accepts a repository only as a requirement that is not editable."""
    editable = line.kind == "requirement" and line.option in ("-e", "--editable")
    return _with_name(line.value) if editable else line.text


def _with_name(address: str) -> str:
    """Return `NAME @ ADDRESS` for an address that ends in `#egg=NAME`."""
    found = re.fullmatch(r"([^#]+)#egg=([\w.\[\],-]+)", address)
    return f"{found[2]} @ {found[1]}" if found else address


def _conda(text: str) -> str:
    """Return a conda environment whose lines for pip have no local packages."""
    import yaml

    environment: dict[str, Any] = conda_file.read(text)
    for each in environment["dependencies"]:
        if isinstance(each, dict) and isinstance(each.get("pip"), list):
            each["pip"] = [line for line in each["pip"] if _is_kept(requirements.read(str(line))[0])]
    return yaml.safe_dump(environment, sort_keys=False)


def kept(lock: Lock, title: str, declared: Iterable[requirements.Line]) -> Lock:
    """Return the lock with the declared hashes only, for packages that have some. UserError if none of them is left."""
    wanted: dict[str, set[str]] = {}
    for line in declared:
        if line.kind == "requirement" and (found := SHA256.findall(line.text)):
            wanted.setdefault(name_of(line.value), set()).update(found)
    if not wanted:
        return lock
    notes = [each for each in lock.text.splitlines() if each.startswith("#")]
    lines = [_restricted(line, wanted, title) for line in requirements.read(lock.text)]
    return Lock("".join(f"{each}\n" for each in [*notes, *lines]))


def _restricted(line: requirements.Line, wanted: dict[str, set[str]], title: str) -> str:
    name = name_of(line.value) if line.kind == "requirement" else ""
    if name not in wanted:
        return line.text
    hashes = sorted(wanted[name] & {*SHA256.findall(line.text)})
    if not hashes:
        raise UserError(
            f"{title} has hashes of {name}, and no file of {line.value} in the package index has one of them",
            code="config-invalid",
            hint="update the hashes if you trust the index; if not, examine the files, which may have been replaced",
        )
    return " \\\n    ".join([line.value, *(f"--hash=sha256:{each}" for each in hashes)])


LOCKED = "locked.txt"
NOTHING = "# no packages\n"
"""The lock if no package is needed on the target. The file of a lock is never empty, except if it was damaged."""
FORMAT = ("--no-header", "--no-annotate")
FORMATS = ("--no-binary", "--only-binary")
BUILDS = "builds.txt"
TO_BUILD = re.compile(r"Failed to (?:download and )?build:? [`'](?P<name>[\w.-]+)|" + inert_python.REFUSED)
"""How uv names the package whose metadata takes a build. The project itself has no name."""
HERE = re.compile(r"^[^#\n]* @ ((?:\w+\+)?file:\S*)", re.MULTILINE | re.IGNORECASE)
"""The path on this machine of a resolved package."""
NO_WHEEL = re.compile(r"Wheels are required for `([\w.-]+)`")


def resolve(
    declared: Declared,
    target: Target,
    *,
    offered: Sequence[Offer] = (),
    torch: str = "",
    builds: Collection[str] = (),
    watch: Watch = unwatched,
) -> Lock:
    """Return the versions of all packages. A uv.lock is only evaluated for the target, without a network.

    Versions that the wheelhouse of the site offers are preferred; the hashes of these packages are not those of its
    files. `torch`: which builds of PyTorch, in the words of uv's `--torch-backend`; not for a uv.lock.

    No code of a package runs here, except of those in `builds`, whose source code the user has agreed to build.

    UserError: the declaration is broken, or no versions satisfy it. DownloadError: a package index cannot be
    reached; safe to retry. UnconfirmedError: the requirements of another package are only known to its code.
    """
    declared.check()
    if declared.kind == "conda":
        raise UserError(
            f"'{declared.title}' is resolved by conda on the site, not on this machine",
            code="usage",
            hint="build the environment, or name a requirements file",
        )
    if not target.satisfies(declared.python):
        raise UserError(
            f"'{declared.title}' requires Python {declared.python}, but the site has Python {target.python}",
            code="config-invalid",
            hint="choose another Python there, such as a module of the site",
        )
    watch(Event(f"resolving the packages of {declared.title}"))
    with uv_program.temporary("resolve") as name:
        folder = Path(name)
        for path, content in installable(declared).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        if declared.kind != "uv":
            torches = ["--torch-backend", torch] if torch else []
            text = _compiled(declared, target, folder, offered, torches, builds=builds)
        else:
            text = _exported(declared, target, folder)
            if offered:
                (folder / LOCKED).write_text("".join(f"{each}\n" for each in _pins(text)))
                compiled = _compiled(declared, target, folder, offered, builds=builds)
                text = wheelhouse.merged(compiled, text, offered)
    head = [f"{TORCH_BACKEND}{torch}"] if torch else []
    lock = Lock("".join(f"{line}\n" for line in [*head, *index_lines(declared)]) + (text or NOTHING))
    return kept(lock, declared.title, _lines(declared)) if declared.kind == "requirements" else lock


def compile_lines(
    lines: Sequence[str], target: Target, title: str, pip: indexes.Settings, builds: Collection[str] = ()
) -> Lock:
    """Return the versions for requirements that no file declares. Errors as in `resolve`."""
    with uv_program.temporary("resolve") as name:
        Path(name, "requirements.txt").write_text("".join(f"{line}\n" for line in lines))
        settings = indexes.for_uv(pip=pip)
        command = _compile(target, "requirements.txt", *settings.options)
        return Lock(_resolved(command, Path(name), settings.variables, (title, target), builds))


def _compiled(
    declared: Declared,
    target: Target,
    folder: Path,
    offered: Sequence[Offer],
    more: Sequence[str] = (),
    *,
    builds: Collection[str],
) -> str:
    """Return the versions for a requirements file or a pyproject.toml; with a uv.lock, those of the file LOCKED."""
    sources, options = [declared.title], list(more)
    if declared.kind == "uv":
        sources, options = ["pyproject.toml"], ["--constraint", LOCKED]
    if "pyproject.toml" in declared.files:
        if "pyproject.toml" not in sources:
            sources.append("pyproject.toml")
        project = pyproject.read(declared.text("pyproject.toml"))
        listed = pyproject.all_dependencies(declared.text("pyproject.toml"))
        addressed = [re.split("[@[]", each, maxsplit=1)[0].strip() for each in listed if requirements.is_local(each)]
        # Other words would be options or lines of their own; uv accepts no package of such a name.
        local = [each for each in (*project.local, *addressed) if re.fullmatch(requirements.NAME, each)]
        if local:
            (folder / "left-out.txt").write_text("".join(f"{each}\n" for each in local))
            options += ["--excludes", "left-out.txt"]
    options += [word for each in declared.extras for word in ("--extra", each)]
    options += [word for each in declared.groups for word in ("--group", each)]
    settings, lines = indexes.for_uv(declared), list(_lines(declared))
    options += settings.options
    variables = dict(settings.variables)
    if any(each.option == "--extra-index-url" for each in lines) and not os.environ.get("UV_INDEX_STRATEGY"):
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip does, for which the file is written
    if any(each.option == "--pre" for each in lines):
        options += ["--prerelease", "allow"]
    if trusted := _trusted(declared, lines):
        variables["UV_INSECURE_HOST"] = " ".join([*variables.get("UV_INSECURE_HOST", "").split(), *trusted])
    if offered:
        stubs, pins = wheelhouse.write(folder, offered)
        others = os.environ.get("UV_FIND_LINKS") or variables.get("UV_FIND_LINKS", "")
        variables["UV_FIND_LINKS"] = ",".join(filter(None, [others, str(stubs)]))
        options += ["--output-file", pins.name]  # uv prefers the versions that are in its output file
    command = _compile(target, *sources, *options)
    return _resolved(command, folder, variables, (declared.title, target), builds, declared=declared)


def _trusted(declared: Declared, lines: Sequence[requirements.Line]) -> list[str]:
    """Return the hosts whose certificates a project leaves unchecked: only those that the project itself brings."""
    named = [each.value for each in lines if each.option == "--trusted-host"]
    if not named:
        return []
    hosts = {urlsplit(each).netloc for each in addresses.foreign(declared)}
    return [each for each in named if each in hosts or each in {host.partition(":")[0] for host in hosts}]


def _pins(exported: str) -> list[str]:
    """Return the versions of a uv.lock, which are those of the wheelhouse, too, whatever their local part."""
    return [f"{each.name}=={each.version}" for each in Lock(exported).packages if "://" not in each.version]


def _compile(target: Target, *arguments: str) -> list[str]:
    platform = ("--python-version", target.python, "--python-platform", target.uv_platform)
    return ["pip", "compile", *FORMAT, "--generate-hashes", *platform, *arguments]


def _exported(declared: Declared, target: Target, folder: Path) -> str:
    """Return the versions in a uv.lock whose markers are true on the target."""
    from packaging.requirements import Requirement

    options = [word for each in declared.extras for word in ("--extra", each)]
    options += [word for each in declared.groups for word in ("--group", each)]
    command = ["export", "--frozen", "--offline", "--no-emit-local", "--no-default-groups", *FORMAT, *options]
    exported = _run(command, folder, {}, declared.title, target)
    _check_metadata(exported, declared.title, declared)
    kept: list[str] = []
    for line in requirements.read(exported):
        if line.kind != "requirement":
            continue
        plain, _semicolon, marker = line.value.partition(" ;")
        if not marker or _is_true(Requirement(line.value), target):
            hashes = line.text.removeprefix(line.value).split()
            kept.append(" \\\n    ".join([plain.strip(), *hashes]))
    return "".join(f"{each}\n" for each in kept)


def _is_true(requirement: object, target: Target) -> bool:
    marker = getattr(requirement, "marker", None)
    return marker is None or bool(marker.evaluate(target.markers))


def _resolved(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    about: tuple[str, Target],
    builds: Collection[str],
    *,
    declared: Declared | None = None,
) -> str:
    """Return the output of `uv pip compile`, which runs no code of packages that are not in `builds`."""
    title, target = about
    formats = [each for each in _lines(declared) if each.option in FORMATS] if declared is not None else []
    chosen = [word for each in formats for name in each.value.split(",") for word in (each.option, name.strip())]
    done = uv_program.run([*command, *chosen], folder=folder, variables=variables, declared=declared, inert=True)
    found = TO_BUILD.search(done.err) if done.code else None
    if found and normal(found["name"] or "") in builds:
        for each in formats:
            if each.option == "--no-binary" and normal(each.value) not in builds:
                raise _unbuilt(each.value, title)
        # uv builds what it may only take from source code, and nothing else.
        (folder / BUILDS).write_text("".join(f"--no-binary {name}\n" for name in builds))
        only = [*command, BUILDS, "--no-build", "--python", sys.executable]
        done = uv_program.run(only, folder=folder, variables=variables, declared=declared)
        wanted = NO_WHEEL.search(done.err) if done.code else None
        if wanted and normal(wanted[1]) not in builds:
            raise _unbuilt(wanted[1], title)
    elif found:
        raise _unbuilt(found["name"], title) if found["name"] else _nameless(title)
    if done.code:
        raise failed(done.err, title, target)
    _check_metadata(done.out, title, declared)
    return done.out


def _check_metadata(output: str, title: str, declared: Declared | None) -> None:
    """UserError if the metadata of a package names a variable, which the site would expand, or a file of this machine
    that the project itself does not name: it would be uploaded."""
    left = VARIABLE.search(output)
    named = f"an address with the variable {left[0]}" if left else ""
    for place in HERE.findall(output):
        if declared is None or not addresses.names(declared, place):
            named = named or f"{requirements.shown(place)}, which is on this machine"
    if named:
        raise UserError(
            f"a package of {title} requires another one at {named}",
            code="config-invalid",
            hint="do not use the package, or tell its author",
        )


def _unbuilt(name: str, title: str) -> UnconfirmedError:
    """Return the error for a package whose requirements are only known to its code."""
    return UnconfirmedError(
        f"'{name}' of {title} has source code only: to know what it requires, its code must run on this machine",
        kind="build",
        names=[normal(name)],
    )


def _nameless(title: str) -> UserError:
    if title.endswith(".toml"):
        return UserError(
            f"'{title}' leaves its packages to the build code of the project, which yurt does not run",
            code="config-invalid",
            hint="list them in `dependencies`, or name a requirements file with `--env FILE`",
        )
    return UserError(
        f"a package of {title} has source code only, and no name",
        code="config-invalid",
        hint="write it as `NAME @ ADDRESS`",
    )


def _run(arguments: Sequence[str], folder: Path, variables: dict[str, str], title: str, target: Target) -> str:
    done = uv_program.run(arguments, folder=folder, variables=variables)
    if done.code:
        raise failed(done.err, title, target)
    return done.out


def failed(output: str, title: str, target: Target) -> YurtError:
    """Return the error for a failure of uv, in one sentence."""
    why = failures.explain(output, target)
    text = f"the packages of {title} cannot be resolved for Python {target.python_version} on {target.machine}"
    if why.kind == "internet":
        return DownloadError(f"{text}: {why.sentence}", code="connection-lost", hint=why.hint)
    return UserError(f"{text}: {why.sentence}", code="config-invalid", hint=why.hint)


def _lines(declared: Declared) -> Iterator[requirements.Line]:
    for name in declared.files:
        if not name.endswith((".toml", ".lock")):
            yield from requirements.read(declared.text(name))


def index_lines(declared: Declared) -> list[str]:
    """Return the indexes that the project itself declares, as lines, each once. Those of the user stay private."""
    found: list[str] = []
    if declared.kind == "requirements":
        found += [f"{each.option} {each.value}" for each in _lines(declared) if each.kind == "index"]
        found += ["--no-index"] if any(each.option == "--no-index" for each in _lines(declared)) else []
    if "pyproject.toml" in declared.files:
        found += pyproject.read(declared.text("pyproject.toml")).indexes
    return list(dict.fromkeys(found))
