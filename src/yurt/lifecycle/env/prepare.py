"""Prepares the environment of a run: the Python of the site, the address, the packages, and what a build needs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from yurt.config import paths
from yurt.envs.address import address
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.target import Target
from yurt.errors import RefusedError
from yurt.lifecycle.env.wheelhouse import choose_packages
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.env import EnvBuild, EnvPlace, EnvTools, RunEnv, SitePython
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched
from yurt.sites import connect
from yurt.sites.env_tools import tools_of
from yurt.sites.folders import env_folders
from yurt.sites.person import person


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of an environment beside it, for lists."""

    address: str
    title: str
    kind: str
    project: str
    python: str
    modules: list[str]
    packages: int
    created: float
    user: str
    host: str


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to build, with all that is needed."""

    env: RunEnv
    build: EnvBuild
    offline: bool
    """Whether the site reaches no package index, so that the wheels are uploaded."""
    target: Target
    packages: dict[str, str] = {}
    """The versions of its packages, by name; empty if they are chosen on the site."""


def prepare(
    declared: Declared,
    context: Context,
    facts: Facts,
    project: str,
    *,
    upgrade: bool = False,
    like: str = "",
    on: Literal["", "login", "node"] = "",
    watch: Watch = unwatched,
) -> Prepared:
    """Return the environment that a declaration means on a site. RefusedError if the site has no suitable Python.

    The packages are chosen once for each address and kept on this machine; `upgrade`: choose them again. `like`: the
    version of Python, such as 3.11, to use if the site has it and the declaration allows it. `on`:
    build on the login node or in a job; by default in a job only if the login node limits the CPU time of processes.
    """
    tools = tools_of(context, facts, watch=watch)
    python = pick_python(tools, declared, context, like)
    target = Target(python=python.version, machine=tools.machine, libc=tools.libc)
    found = address(declared, target, context.modules_to_load, wheelhouse=context.wheelhouse)
    later = paths.data_home() / "envs" / f"{found}.upgraded"
    if upgrade:
        newest = choose_packages(declared, target, python, context, facts, watch=watch)
        paths.write_private(later, newest.digest.encode())
    if later.exists():
        salt = later.read_text()
        found = address(declared, target, context.modules_to_load, wheelhouse=context.wheelhouse, salt=salt)
    bases = env_folders(context, facts)
    place = place_of(context, declared)
    if place not in bases:
        raise RefusedError(
            f"{context.name} has no home folder for the environment of {declared.title}",
            code="impossible",
            hint="use `--env-place scratch`",
        )
    folder = layout.env(bases[place], found)
    lock = Lock("")
    if declared.kind != "conda":
        folders = [layout.env(base, found) for base in dict.fromkeys(bases.values())]
        known = _kept(found) or _built_before(context, folders, found)
        lock = known or _keep(found, choose_packages(declared, target, python, context, facts, watch=watch))
    packages = {each.name: each.version for each in lock.packages}
    env = RunEnv(
        address=found,
        title=declared.title,
        folder=folder,
        python=python.version,
        lock=lock.digest if lock.text else "",
        packages=len(packages),
        place=place,
    )
    build = EnvBuild(
        folder=folder,
        kind="conda" if declared.kind == "conda" else "lock",
        definition=_definition(env, declared, context, project),
        lock=lock.text.encode(),
        environment=declared.files[declared.title] if declared.kind == "conda" else b"",
        python=python.path,
        uv=tools.uv,
        modules_init=facts.modules_init,
        modules=list(context.modules_to_load),
        pack=place == "tmpdir",
        on_node=_job_options(context) if on == "node" or (not on and tools.cpu_seconds is not None) else None,
    )
    reaches = tools.index if build.on_node is None else facts.node is not None and facts.node.internet
    prepared = Prepared(env=env, build=build, offline=not reaches, target=target, packages=packages)
    before = saved(context.name, env)
    if before is None or msgspec.structs.replace(before.build, definition=build.definition) != build:
        _save(context.name, prepared)
    return prepared


def place_of(context: Context, declared: Declared) -> EnvPlace:
    """Return where an environment is kept. One of conda is never packed: its files contain its path."""
    place = context.env_place or "scratch"
    return "scratch" if place == "tmpdir" and declared.kind == "conda" else place


def saved(context: str, env: RunEnv) -> Prepared | None:
    """Return an environment that was prepared on this machine before."""
    try:
        return msgspec.json.decode(_file(context, env).read_bytes(), type=Prepared)
    except (OSError, msgspec.MsgspecError):
        return None


def pick_python(tools: EnvTools, declared: Declared, context: Context, like: str = "") -> SitePython:
    """Return the Python for an environment: the usual one of the site if it is suitable, else the newest that is.

    A suitable one of the version `like` comes first.
    """
    wanted = context.env_python or ""
    suitable = [
        each
        for each in tools.pythons
        if Target(python=each.version, machine=tools.machine, libc=tools.libc).satisfies(declared.python)
        and (not wanted or f"{each.version}.".startswith(f"{wanted}."))
        and (each.venv or tools.uv)
    ]
    if not suitable:
        needs = f"Python {wanted}" if wanted else f"a Python {declared.python}".rstrip()
        have = ", ".join(dict.fromkeys(each.version for each in tools.pythons)) or "none"
        raise RefusedError(
            f"{context.name} has no {needs.removeprefix('a ')} for the environment of {declared.title} (it has {have})",
            code="impossible",
            hint="load one with `modules_to_load` in the context, or use `--env none`",
        )
    if like and (same := [each for each in suitable if f"{each.version}.".startswith(f"{like}.")]):
        return same[0]
    usual = suitable[0]
    if usual.path == tools.pythons[0].path or usual.version == tools.pythons[0].version:
        return usual
    return max(suitable, key=lambda each: [int(part) for part in each.version.split(".")])


def _job_options(context: Context) -> list[str]:
    """Return the options of sbatch for a job that builds an environment."""
    given = {"partition": context.partition, "account": context.account, "qos": context.qos}
    return ["--time=60", *(f"--{name}={value}" for name, value in given.items() if value)]


def lock_file(found: str) -> Path:
    """Return where this machine keeps the packages of an environment."""
    return paths.data_home() / "envs" / f"{found}.lock"


def _kept(found: str) -> Lock | None:
    try:
        return Lock(lock_file(found).read_text())
    except OSError:
        return None


def _built_before(context: Context, folders: Sequence[str], found: str) -> Lock | None:
    """Return the packages that another machine chose for this environment, wherever it is kept."""
    state = next((each for each in connect.backend(context).envs.look(folders) if each.lock), None)
    if state is None:
        return None
    text = state.lock.rstrip("\n") + "\n"
    paths.write_private(lock_file(found), text.encode())
    return Lock(text)


def _keep(found: str, lock: Lock) -> Lock:
    paths.write_private(lock_file(found), lock.text.encode())
    return lock


def _definition(env: RunEnv, declared: Declared, context: Context, project: str) -> bytes:
    return msgspec.json.encode(
        Definition(
            address=env.address,
            title=env.title,
            kind=declared.kind,
            project=project,
            python=env.python,
            modules=list(context.modules_to_load),
            packages=env.packages,
            created=time.time(),
            user=person(),
            host=os.uname().nodename,
        )
    )


def _save(context: str, prepared: Prepared) -> None:
    paths.write_private(_file(context, prepared.env), msgspec.json.encode(prepared))


def _file(context: str, env: RunEnv) -> Path:
    place = "" if env.place == "scratch" else f"-{env.place}"
    return paths.data_home() / "envs" / f"{context}-{env.address}{place}.json"
