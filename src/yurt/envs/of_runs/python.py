"""Chooses the Python of an environment: one of the site, one of its modules, or one that uv downloads there."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import msgspec

from yurt.contexts.env_tools import tools_of
from yurt.envs import uv_binary
from yurt.envs.declared import Declared
from yurt.envs.target import Target
from yurt.errors import RefusedError
from yurt.model.context import Context
from yurt.model.env import EnvTools, SitePython
from yurt.model.facts import Facts
from yurt.model.progress import Watch, unwatched

MOST_TRIED = 3
"""So many modules are loaded to find out which Python they provide."""

SOON = 60.0
"""Seconds for which tools count as just asked."""

MANAGED = "managed:"


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A Python, the tools that go with it, and the modules to load for it."""

    python: SitePython
    tools: EnvTools
    modules: list[str] = []


def choose(declared: Declared, context: Context, facts: Facts, *, like: str = "", watch: Watch = unwatched) -> Chosen:
    """Return the Python for an environment. RefusedError if the site has none and cannot get one.

    `like`: a version such as 3.11, to use if the site has it and the declaration allows it.
    """
    tools = tools_of(context, facts, watch=watch)
    found = pick(tools, declared, context, like)
    lacks = found is None or (declared.kind == "conda" and not tools.conda)
    if lacks:
        tools = tools_of(context, facts, oldest=SOON, watch=watch)
        found = pick(tools, declared, context, like)
    if found is not None:
        return Chosen(python=found, tools=tools)
    for module in modules_for(tools, declared, context)[:MOST_TRIED]:
        loaded = msgspec.structs.replace(context, modules_to_load=(*context.modules_to_load, module))
        try:
            more = tools_of(loaded, facts, watch=watch)
        except RefusedError:  # it does not load
            continue
        if (found := pick(more, declared, context, like)) is not None:
            return Chosen(python=found, tools=more, modules=[module])
    if version := _downloadable(tools, declared, context):
        python = SitePython(version, MANAGED + version.rpartition(".")[0], venv=False)
        return Chosen(python=python, tools=tools)
    raise _none(tools, declared, context)


def pick(tools: EnvTools, declared: Declared, context: Context, like: str = "") -> SitePython | None:
    """Return the usual Python of the site if it is suitable, else the newest that is; None if none is.

    A suitable one of the version `like` comes first.
    """
    by_itself = declared.kind == "conda" or bool(tools.uv) or can_give_uv(tools)
    suitable = [
        each for each in tools.pythons if (each.venv or by_itself) and _suits(each.version, tools, declared, context)
    ]
    if not suitable:
        return None
    if like and (same := [each for each in suitable if f"{each.version}.".startswith(f"{like}.")]):
        return same[0]
    usual = suitable[0]
    if usual.path == tools.pythons[0].path or usual.version == tools.pythons[0].version:
        return usual
    return max(suitable, key=lambda each: _numbers(each.version))


def modules_for(tools: EnvTools, declared: Declared, context: Context) -> list[str]:
    """Return the modules whose names promise a suitable Python, the newest first; those with plain names first."""
    found: list[tuple[list[int], bool, str]] = []
    for module in tools.python_modules:
        version = re.match(r"[\d.]+\d", module.rpartition("/")[2])
        # `python/3.11` can be any 3.11; it is loaded to find out.
        if version and any(
            _suits(each, tools, declared, context) for each in (version[0], f"{version[0]}.0", f"{version[0]}.99")
        ):
            plain = module.rpartition("/")[2] == version[0]
            found.append((_numbers(version[0])[:2], plain, module))
    found.sort(key=lambda each: (each[0], each[1], _numbers(each[2])), reverse=True)
    return [module for *_, module in found]


def can_give_uv(tools: EnvTools) -> bool:
    """Whether there is a static uv for the machine."""
    return tools.machine in uv_binary.MACHINES


def _suits(version: str, tools: EnvTools, declared: Declared, context: Context) -> bool:
    wanted = context.env_python or ""
    plain = re.fullmatch(r"[\d.]+", wanted)
    return Target(python=version, machine=tools.machine, libc=tools.libc).satisfies(declared.python) and (
        not plain or f"{version}.".startswith(f"{wanted}.")
    )


def _downloadable(tools: EnvTools, declared: Declared, context: Context) -> str:
    """Return the version of a Python that uv can download on the site: as on this machine if suitable, else the newest.

    Empty if there is none, or if the site has no internet.
    """
    if declared.kind == "conda" or not tools.index or not (tools.uv or can_give_uv(tools)):
        return ""
    suitable = [each for each in uv_binary.pythons() if _suits(each, tools, declared, context)]
    here = [each for each in suitable if _numbers(each)[:2] == list(sys.version_info[:2])]
    return max(here or suitable, key=_numbers, default="")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _none(tools: EnvTools, declared: Declared, context: Context) -> RefusedError:
    wanted = context.env_python or ""
    needs = f"Python {wanted or declared.python}".strip()
    have: Sequence[str] = list(dict.fromkeys(each.version for each in tools.pythons))
    return RefusedError(
        f"{context.name} has no {needs} for the environment of {declared.title} (it has {', '.join(have) or 'none'}),"
        " neither in its modules nor from a download",
        code="impossible",
        hint="load one with `modules_to_load` in the context, or use `--env none`",
    )
