"""env: build, list, show and remove environments on sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from yurt.config import contexts, precedence
from yurt.contexts import connect, env_tools
from yurt.contexts.facts import facts_of
from yurt.contexts.folders import env_folders
from yurt.contexts.project import Project
from yurt.envs import failures
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock, Package, PackageChange, changes
from yurt.envs.of_runs import build as building
from yurt.envs.of_runs import choose, prepare
from yurt.envs.of_runs.known import Definition, contexts_with_environments
from yurt.envs.of_runs.packages import is_conda, keep, listed
from yurt.errors import NotFoundError, RefusedError, UserError, YurtError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.env import EnvCondition, EnvPlace, EnvState
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.model.site_words import MALFORMED

if TYPE_CHECKING:
    from yurt.backends.base import Envs

PAUSE = 2.0
"""Seconds between two looks at a build that is followed; its end is noticed at once."""

RECENT = 600.0
"""Seconds for which `env build` believes what it knows of a site; a failed build makes it ask again."""

REPEATS = 3
"""How often a build is repeated whose builder was killed."""


class EnvView(msgspec.Struct, frozen=True, kw_only=True):
    """One environment on a context."""

    address: str
    """Its address: a checksum of the declaration, the modules, the Python version and the platform."""
    context: str
    condition: EnvCondition
    """ready; building; failed; changed: packages were added to it; purged: files were deleted; none: not built."""
    title: str = ""
    """The file that declares it."""
    project: str = ""
    """The project that had it built."""
    python: str = ""
    """The version of its Python."""
    modules: list[str] = []
    """Environment modules that are loaded before it is activated."""
    packages: int = 0
    """The number of declared packages, with those that they need; 0 if they are chosen on the site."""
    installed: int = 0
    """The number of packages that are installed, with pip."""
    size: int = 0
    """Bytes on disk."""
    files: int = 0
    """The number of its files and folders."""
    packed: int = 0
    """Bytes of the file that jobs unpack onto the disks of nodes; 0 if there is none."""
    built: float | None = None
    """When it was built (seconds since 1970)."""
    used: float | None = None
    """When a run last used it (seconds since 1970)."""
    place: EnvPlace = "scratch"
    """Where it is kept: scratch or home."""
    folder: str
    """Its folder on the context."""
    failure: str = ""
    """Why the last build failed."""
    change: str = ""
    """How its packages differ from those that were built, if some were added."""


class EnvShown(msgspec.Struct, frozen=True, kw_only=True):
    """One environment with its packages."""

    env: EnvView
    """The environment."""
    packages: list[Package]
    """Its packages."""
    today: str = ""
    """The address that the project's declaration has now; empty outside a project with a declaration."""
    changes: list[PackageChange] = []
    """The packages that differ between it and the declaration of today, if that was ever resolved."""


class EnvsRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The environments that were removed."""

    context: str
    addresses: list[str]
    """The addresses of the environments."""


def build(
    file: str = "",
    *,
    context: str = "",
    python: str = "",
    place: str = "",
    upgrade: bool = False,
    on: Literal["", "login", "node"] = "",
    detach: bool = False,
    watch: Watch = unwatched,
) -> Result[EnvView]:
    """Build the environment of this project on a context, and wait for it unless `detach`.

    RefusedError if the build failed, with the likely cause.
    """
    wanted, facts = _site(context, file, python, place)
    project = Project()
    declared = _declared(wanted, project)
    env_tools.tools_of(wanted, facts, oldest=RECENT, watch=watch)
    prepared = prepare.prepare(declared, wanted, facts, project.label, upgrade=upgrade, on=on, watch=watch)
    envs = connect.backend(wanted).envs
    building.start(wanted.name, prepared, envs, watch=watch)
    (state,) = envs.look([prepared.env.folder], wait=0 if detach else PAUSE)
    if not detach:
        state = _follow(state, wanted.name, prepared, envs, watch)
    if state.condition == "ready" and prepared.build.kind == "conda":
        keep(prepared.env, wanted.name, state.lock)
    if state.condition == "failed" and not detach:
        env_tools.forget(wanted.name)
        found = failures.explain(state.failure, prepared.target)
        lines = "".join(f"\n  {line}" for line in found.lines)
        raise RefusedError(
            f"the environment of {declared.title} was not built on {wanted.name}: {found.cause}{lines}",
            code="build-failed",
            hint=found.hint,
        )
    return Result(kind="env", data=_view(state, wanted.name), warnings=prepared.notes)


def _follow(state: EnvState, context: str, prepared: prepare.Prepared, envs: Envs, watch: Watch) -> EnvState:
    """Wait for the end of a build. Repeats it if its builder was killed, or if the index of the site lacks packages."""
    interrupted = 0
    while state.condition not in ("ready", "failed") or _is_packing(state, prepared):
        done = min(state.installed, prepared.env.packages)
        watch(Event(f"building {prepared.env.title} on {context}", done, prepared.env.packages))
        if state.condition != "building":
            interrupted += not state.lacking
            if interrupted > REPEATS:
                raise RefusedError(
                    f"the build of the environment of {prepared.env.title} on {context} was interrupted",
                    code="build-failed",
                    hint="the login node may end processes that use much CPU time; try `yurt env build --on node`",
                )
            building.start(context, prepared, envs, lacking=state.lacking, watch=watch)
        (state,) = envs.look([prepared.env.folder], wait=PAUSE)
    return state


def list_(names: Sequence[str] = (), *, context: str = "", watch: Watch = unwatched) -> Result[list[EnvView]]:
    """Return the environments on contexts; those used last come first.

    By default those on the current context, or, if that is this machine, on all for which it has prepared some.
    """
    found: list[EnvView] = []
    warnings: list[str] = []
    if not names and not context and contexts.current_name("") == "local":
        names = contexts_with_environments()
    elif not names:
        names = [context]
    for name in names:
        wanted, facts = _site(name)
        watch(Event(f"reading the environments on {wanted.name}"))
        envs = connect.backend(wanted).envs
        try:
            states = envs.look(envs.folders(_bases(wanted, facts)), brief=True)
        except YurtError as error:
            if len(names) < 2:
                raise
            warnings.append(f"cannot read the environments on {wanted.name}: {error.message}")
            continue
        found += [_view(state, wanted.name) for state in states]
    found.sort(key=lambda each: -(each.used or each.built or 0))
    return Result(kind="envs", data=found, warnings=warnings)


def show(name: str = "", *, context: str = "", watch: Watch = unwatched) -> Result[EnvShown]:
    """Return an environment, by default that of this project, and how it differs from the declaration of today."""
    wanted, facts = _site(context)
    project = Project()
    envs = connect.backend(wanted).envs
    declared = _chosen(wanted, project)
    today = prepare.prepare(declared, wanted, facts, project.label, watch=watch) if declared is not None else None
    if not name and today is None:
        raise _nothing_declared(project)
    folder = today.env.folder if today is not None else ""
    if name:
        several = _complete(name, envs.folders(_bases(wanted, facts)), wanted.name)
        folder = folder if folder in several else several[0]
    (state,) = envs.look([folder], edits=True)
    view, lock = _view(state, wanted.name), Lock(state.lock)
    conda = is_conda(view.title)
    packages = listed(state.lock, view.title)
    differ = changes(lock, Lock(today.build.lock.decode())) if today is not None and packages and not conda else []
    shown = EnvShown(env=view, packages=packages, today=today.env.address if today is not None else "", changes=differ)
    return Result(kind="env-shown", data=shown)


def remove(names: Sequence[str], *, context: str = "", watch: Watch = unwatched) -> Result[EnvsRemoved]:
    """Remove environments from a context. Runs that use one fail; the next run that needs it builds it again."""
    wanted, facts = _site(context)
    envs = connect.backend(wanted).envs
    known = envs.folders(_bases(wanted, facts))
    folders = [folder for name in names for folder in _complete(name, known, wanted.name)]
    addresses = list(dict.fromkeys(folder.rpartition("/")[2] for folder in folders))
    watch(Event(f"removing {len(addresses)} environments from {wanted.name}"))
    envs.remove(folders)
    return Result(kind="envs-removed", data=EnvsRemoved(context=wanted.name, addresses=addresses))


def _is_packing(state: EnvState, prepared: prepare.Prepared) -> bool:
    """Whether an environment is usable, and still packed for the disks of nodes."""
    return prepared.build.pack and bool(state.phase)


def _bases(wanted: Context, facts: Facts) -> list[str]:
    """Return yurt's folders on a site that may contain environments."""
    return list(dict.fromkeys(env_folders(wanted, facts).values()))


def _site(name: str, file: str = "", python: str = "", place: str = "") -> tuple[Context, Facts]:
    """Return a context with the settings of this project, and its facts. UserError on this machine."""
    context = contexts.site(contexts.current_name(name))
    flags = {"env": file or None, "env_python": python or None, "env_place": place or None}
    wanted = precedence.as_context(context.name, precedence.resolve(context, flags))
    if wanted.type == "local":
        raise UserError(
            "runs on this machine use the Python that is active; yurt builds environments on clusters",
            code="usage",
            hint="choose a cluster with `--context NAME`",
        )
    return wanted, facts_of(wanted)


def _declared(wanted: Context, project: Project) -> Declared:
    found = _chosen(wanted, project)
    if found is None:
        raise _nothing_declared(project)
    return found


def _chosen(wanted: Context, project: Project) -> Declared | None:
    plain = msgspec.structs.replace(wanted, venv=None, conda=None, container=None)
    if plain.env == choose.NONE:
        plain = msgspec.structs.replace(plain, env=None)
    return choose.chosen(plain, ["python"], project, own_setup=False)[0]


def _nothing_declared(project: Project) -> UserError:
    return UserError(
        f"project '{project.name}' declares no packages",
        code="usage",
        hint="add a requirements.txt, or dependencies to pyproject.toml",
    )


def _complete(name: str, known: Sequence[str], context: str) -> list[str]:
    """Return the folders, of those that are known, of the one environment that a name means."""
    found: dict[str, list[str]] = {}
    for folder in known:
        address = folder.rpartition("/")[2]
        if address.startswith(name):
            found.setdefault(address, []).append(folder)
    if len(found) == 1:
        return next(iter(found.values()))
    problem = f"no environment '{name}'" if not found else f"several environments that begin with '{name}'"
    raise NotFoundError(f"{context} has {problem}", code="not-found", hint=f"list them with `yurt env list {context}`")


def _view(state: EnvState, context: str) -> EnvView:
    try:
        known = msgspec.json.decode(state.definition, type=Definition)
    except MALFORMED:
        known = None
    view = EnvView(
        address=state.folder.rpartition("/")[2],
        context=context,
        condition=state.condition,
        installed=state.installed,
        size=state.kilobytes << 10,
        files=state.entries,
        packed=state.pack_kilobytes << 10,
        built=state.built,
        used=state.used,
        place="home" if layout.in_home(state.folder) else "scratch",
        folder=state.folder,
        failure=state.failure.partition("\n")[0] if state.condition == "failed" else "",
        change=state.change,
    )
    if known is None:
        return view
    return msgspec.structs.replace(
        view,
        title=known.title,
        project=known.project,
        python=known.python,
        modules=known.modules,
        packages=known.packages,
    )
