"""What a site has for building environments: from the cache, or asked in one round trip."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from yurt.config import facts as cache
from yurt.config import paths
from yurt.contexts import connect
from yurt.contexts.folders import base_folder
from yurt.errors import RefusedError
from yurt.model.context import Context
from yurt.model.env import EnvTools
from yurt.model.facts import Facts
from yurt.model.progress import Event, Watch, unwatched

MOST_KEPT = 8


class _Kept(msgspec.Struct, frozen=True):
    """Tools, and what they depend on."""

    key: list[str]
    tools: EnvTools


def tools_of(context: Context, facts: Facts, *, oldest: float = cache.WEEK, watch: Watch = unwatched) -> EnvTools:
    """Return the tools of a site, not older than a week, or than `oldest` seconds.

    RefusedError if the modules of the context do not load.
    """
    key = [*cache.address_of(context), "", *context.modules_to_load]
    kept = _load(context.name)
    known = next((each.tools for each in kept if each.key == key), None)
    if known is not None and time.time() - known.asked_at < oldest:
        return known
    kept = [each for each in kept if each.key != key]
    watch(Event(f"asking {context.name} what it has for building environments"))
    modules: Sequence[str] = context.modules_to_load
    found = connect.backend(context).envs.ask(base_folder(context, facts), facts.modules_init, modules)
    if found.modules_failed:
        raise RefusedError(
            f"{context.name}: {found.modules_failed.removeprefix('yurt: ')}",
            code="impossible",
            hint=f"correct `modules_to_load` with `yurt context edit {context.name}`",
        )
    if not found.machine:
        raise RefusedError(
            f"{context.name}: a login shell did not say which Pythons it has",
            code="impossible",
            hint="check that your profile there neither exits nor starts another shell, or use `--env none`",
        )
    with suppress(OSError):  # asked again next time
        paths.write_private(_file(context.name), msgspec.json.encode([_Kept(key, found), *kept][:MOST_KEPT]))
    return found


def forget(name: str) -> None:
    """Delete what is cached: after a failed build, the site is asked again."""
    _file(name).unlink(missing_ok=True)


def _file(name: str) -> Path:
    return paths.config_home() / "facts" / f"{name}.env.json"


def _load(name: str) -> list[_Kept]:
    """Return the tools that are cached, for several lists of modules."""
    try:
        kept = msgspec.json.decode(_file(name).read_bytes(), type=list[_Kept])
    except (OSError, msgspec.MsgspecError):
        return []
    return [each for each in kept if 0 <= time.time() - each.tools.asked_at < cache.WEEK]
