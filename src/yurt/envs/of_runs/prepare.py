"""Prepares the environment of a run: the Python of the site, the address, the packages, and what a build needs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from yurt.config import paths, trust
from yurt.contexts.facts import internet_of_nodes
from yurt.contexts.folders import env_folders
from yurt.contexts.person import person
from yurt.envs import pyproject, requirements
from yurt.envs.declared import Declared
from yurt.envs.lock import Lock
from yurt.envs.of_runs import conda, locks
from yurt.envs.of_runs.known import Definition
from yurt.envs.of_runs.packages import kept
from yurt.envs.of_runs.python import Chosen, can_give_uv, choose
from yurt.envs.of_runs.wheelhouse import choose_packages
from yurt.envs.target import Target
from yurt.errors import RefusedError, YurtError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.digest import sha256_name
from yurt.model.env import EnvBuild, EnvPlace, EnvTools, RunEnv
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched

BACKENDS = (((12, 8), "cu128"), ((12, 0), "cu126"), ((11, 0), "cu118"))
"""The least CUDA version of a driver, and the builds of PyTorch for it in the words of uv; the first that fits."""

RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")


def needed(lock: Lock) -> str:
    """Return the CUDA version that PyTorch in a lock was built for, such as `13.2`; empty without PyTorch or CUDA."""
    versions = {each.name: each.version for each in lock.packages}
    if "torch" not in versions:
        return ""
    found = [version for name, version in versions.items() if RUNTIME.fullmatch(name)]
    return ".".join(found[0].split(".")[:2]) if found else ""


def is_too_new(lock: Lock, driver: str) -> bool:
    """Whether a lock has a PyTorch that does not run with a driver; False if one of the versions is not known."""
    wanted = needed(lock)
    return bool(driver and wanted) and _numbers(driver)[0] < _numbers(wanted)[0]


def backend(driver: str) -> str:
    """Return the value of uv's `--torch-backend` for a driver; empty if there is no PyTorch for it."""
    return next((name for least, name in BACKENDS if _numbers(driver) >= least), "")


def _numbers(version: str) -> tuple[int, int]:
    parts = [int(part) for part in re.findall(r"\d+", version)[:2]]
    return (*parts, 0, 0)[:2]  # type: ignore[return-value]


def address(
    declared: Declared, target: Target, modules: Sequence[str], *, wheelhouse: Sequence[str] = (), salt: str = ""
) -> str:
    """Return 16 hexadecimal digits. Comments in requirements files and line ends make no difference.

    The order of modules matters, as the order of loading them does. UserError for a broken declaration.
    """
    declared.check()
    parts: dict[str, Any] = {
        "kind": declared.kind,
        "files": {name: _content(declared, name) for name in declared.files},
        "extras": sorted(declared.extras),
        "groups": sorted(declared.groups),
        "modules": list(modules),
        "target": [target.python_version, target.machine, target.libc_family],
        "salt": salt,
    }
    if wheelhouse:
        parts["wheelhouse"] = list(wheelhouse)
    digest = sha256_name(msgspec.json.encode(parts, order="deterministic", enc_hook=str))
    return digest[:16]


def _content(declared: Declared, name: str) -> Any:
    """Return the part of a file that decides what is installed."""
    text = declared.text(name)
    if name == "pyproject.toml":
        return pyproject.relevant(text)
    if name.endswith((".toml", ".lock")) or (declared.kind == "conda" and name == declared.title):
        return text
    return requirements.canonical(text)


WORTH_UV = 20
"""From so many packages on, a site that lacks uv gets it: it installs them in a fraction of the time of pip."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to build, with all that is needed."""

    env: RunEnv
    build: EnvBuild
    offline: bool
    """Whether the site reaches no package index, so that the wheels are uploaded."""
    target: Target
    packages: dict[str, str] = {}
    """The versions of its packages, by name; empty if they are chosen on the site."""
    needs_uv: bool = False
    """Whether the site can build it with uv only."""
    notes: list[str] = []
    """What the user should know about it."""


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
    chosen = choose(declared, context, facts, like=like, watch=watch)
    tools, python, modules = chosen.tools, chosen.python, [*context.modules_to_load, *chosen.modules]
    target = Target(python=python.version, machine=tools.machine, libc=tools.libc)
    address_of = partial(address, declared, target, modules, wheelhouse=context.wheelhouse)
    builds = trust.of(project).builds
    resolve = partial(
        choose_packages, declared, target, python, context, facts, modules=modules, builds=builds, watch=watch
    )
    later = paths.data_home() / "envs" / f"{address_of()}.upgraded"
    if upgrade:
        paths.write_private(later, resolve().digest.encode())
    salt = later.read_text() if later.exists() else ""
    found = address_of(salt=salt)
    bases, place = env_folders(context, facts), place_of(context, declared)
    if place not in bases:
        raise RefusedError(
            f"{context.name} has no home folder for the environment of {declared.title}",
            code="impossible",
            hint="use `--env-place scratch`",
        )
    known = partial(locks.known, context, list(dict.fromkeys(bases.values())), declared)
    driver = _driver(context, facts, tools)
    lock, notes = Lock(""), list[str]()
    if declared.kind == "conda":
        found = address_of(salt=f"{salt}cuda {driver}") if context.env_cuda else found
        if context.env_place == "tmpdir":
            notes.append(f"env_place: tmpdir has no effect on {declared.title}: conda environments stay in scratch")
    else:
        lock = known(found) or locks.keep(found, resolve())
        if torch := _torch(declared, context, tools, lock, driver):
            found = address_of(salt=salt + torch)
            lock = known(found) or locks.keep(found, _matched(resolve, torch, lock))
        notes += _too_new(declared, context, lock, driver)
    folder = layout.env(bases[place], found)
    env = RunEnv(
        address=found,
        title=declared.title,
        folder=folder,
        python=python.version,
        lock=lock.digest if lock.text else "",
        packages=len(lock.packages),
        place=place,
        modules=chosen.modules,
        torch=lock.torch_backend,
    )
    build = EnvBuild(
        folder=folder,
        kind="conda" if declared.kind == "conda" else "lock",
        definition=_definition(env, declared, modules, project),
        lock=lock.text.encode(),
        environment=declared.files[declared.title] if declared.kind == "conda" else b"",
        python=python.path,
        uv="" if declared.kind == "conda" else tools.uv or _given_uv(chosen, env),
        cuda=driver if declared.kind == "conda" else "",
        installer=conda.installer(declared, chosen.tools, context) if declared.kind == "conda" else "",
        modules_init=facts.modules_init,
        modules=modules,
        pack=place == "tmpdir",
        on_node=_job_options(context) if on == "node" or (not on and tools.cpu_seconds is not None) else None,
    )
    reaches = tools.index if build.on_node is None else bool(internet_of_nodes(context, facts))
    prepared = Prepared(
        env=env,
        build=build,
        offline=not reaches,
        target=target,
        packages={each.name: each.version for each in lock.packages} or kept(env, context.name),
        needs_uv=not python.venv or bool(lock.torch_backend and reaches),
        notes=notes,
    )
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


def _given_uv(chosen: Chosen, env: RunEnv) -> str:
    """Return where yurt puts uv on a site that lacks it; empty if pip does."""
    wanted = not chosen.python.venv or env.torch or env.packages >= WORTH_UV
    return layout.tool(layout.chain(env.folder)[0], "uv") if wanted and can_give_uv(chosen.tools) else ""


def _job_options(context: Context) -> list[str]:
    """Return the options of sbatch for a job that builds an environment."""
    given = {"partition": context.partition, "account": context.account, "qos": context.qos}
    return ["--time=60", *(f"--{name}={value}" for name, value in given.items() if value)]


def _torch(declared: Declared, context: Context, tools: EnvTools, lock: Lock, driver: str) -> str:
    """Return which builds of PyTorch the driver needs instead of the usual ones; empty if those are right."""
    can_choose = declared.kind != "uv" and not context.wheelhouse and (tools.uv or can_give_uv(tools))
    if context.env_cuda == "cpu":
        return "cpu" if can_choose and needed(lock) else ""
    return backend(driver) if can_choose and is_too_new(lock, driver) else ""


def _matched(resolve: Callable[..., Lock], torch: str, usual: Lock) -> Lock:
    """Choose the packages with these builds of PyTorch; `usual` if that fails."""
    try:
        return resolve(torch=torch)
    except YurtError:
        return usual


def _driver(context: Context, facts: Facts, tools: EnvTools) -> str:
    """Return the CUDA version that the driver of a site supports; empty if it is not known or does not matter."""
    named = context.env_cuda or (facts.node.cuda if facts.node is not None else "") or tools.cuda
    return "" if named in ("none", "cpu") else named


def _too_new(declared: Declared, context: Context, lock: Lock, driver: str) -> list[str]:
    if lock.torch_backend or not is_too_new(lock, driver):
        return []
    return [
        f"PyTorch of {declared.title} is built for CUDA {needed(lock)}, but the driver of {context.name} supports"
        f" {driver} only; declare an older version of torch, or set `env_cuda: none` to leave it"
    ]


def _definition(env: RunEnv, declared: Declared, modules: list[str], project: str) -> bytes:
    return msgspec.json.encode(
        Definition(
            address=env.address,
            title=env.title,
            kind=declared.kind,
            project=project,
            python=env.python,
            modules=modules,
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
