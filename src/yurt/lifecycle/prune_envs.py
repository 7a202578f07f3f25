"""prune: remove environments that nobody has used for a while, and wheels that no environment needs any more.

Never removes one that an unfinished run needs, of any machine, or one that is being built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from yurt.backends.kinds import kind_of
from yurt.config import contexts
from yurt.contexts import connect
from yurt.contexts.facts import facts_of
from yurt.contexts.folders import base_folder, env_folders
from yurt.envs.of_runs.known import Definition, contexts_with_environments
from yurt.errors import YurtError
from yurt.model.context import Context
from yurt.model.env import EnvPlace, UnusedEnv
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.site_words import MALFORMED
from yurt.store import Store

UNUSED = 30 * 24 * 3600.0
"""Seconds without a use after which an environment is removed."""


class PrunedEnv(msgspec.Struct, frozen=True, kw_only=True):
    """An environment that is removed, or uploaded wheels that no environment needs any more."""

    what: Literal["environment", "replaced", "wheels"]
    """environment; replaced: an older copy of one, which was built again after files of it were deleted; wheels."""
    address: str
    """The address of the environment; empty for wheels."""
    context: str
    place: EnvPlace = "scratch"
    """Where it is kept: scratch or home."""
    title: str = ""
    """The file that declares it."""
    project: str = ""
    """The project that had it built."""
    size: int
    """Bytes on disk."""
    files: int
    """The number of its files and folders."""
    used: float | None
    """When a run last used it (seconds since 1970); null for wheels."""


def survey(
    store: Store, *, context: str, older_than: float | None, watch: Watch = unwatched
) -> tuple[list[PrunedEnv], list[str]]:
    """Return what to remove, and warnings. Removes nothing. One request for each context and place.

    Queries the given context, else those for which this machine prepared environments; those that cannot be queried are
    warnings.
    """
    found: list[PrunedEnv] = []
    warnings: list[str] = []
    known = contexts.load(contexts.default_file()).contexts
    for name in [context] if context else contexts_with_environments():
        each = known.get(name)  # runs of a context that was removed can be removed, too
        if each is None or kind_of(each.type).here:
            continue
        watch(Event(f"reading the environments on {each.name}"))
        try:
            for place in _places(each):
                found += _prune(store, each, place, older_than, ())
        except YurtError as error:
            if context:
                raise
            warnings.append(f"cannot read the environments on {each.name}: {error.message}")
    return found, warnings


def remove(
    store: Store, chosen: Sequence[PrunedEnv], *, older_than: float | None, watch: Watch = unwatched
) -> tuple[list[PrunedEnv], list[YurtError]]:
    """Remove what `survey` found and nobody has used since; return it, and the errors of contexts."""
    gone: list[PrunedEnv] = []
    errors: list[YurtError] = []
    for name, place in dict.fromkeys((each.context, each.place) for each in chosen):
        there = [each for each in chosen if (each.context, each.place) == (name, place)]
        group = [UnusedEnv(what=each.what, address=each.address) for each in there]
        watch(Event(f"removing environments from {name} ({len(group)})"))
        try:
            gone += _prune(store, contexts.site(name), place, older_than, group)
        except YurtError as error:
            errors.append(error)
    return gone, errors


def _places(context: Context) -> list[EnvPlace]:
    return [place for place in env_folders(context, facts_of(context)) if place != "tmpdir"]


def _prune(
    store: Store, context: Context, place: EnvPlace, older_than: float | None, chosen: Sequence[UnusedEnv]
) -> list[PrunedEnv]:
    facts = facts_of(context)
    unfinished = store.newest(where={"context": [context.name]}, unfinished=True, candidates=True)
    needed = sorted({entry.run.env.address for entry in unfinished if entry.run.env is not None})
    runs, base = base_folder(context, facts), env_folders(context, facts)[place]
    age = UNUSED if older_than is None else older_than
    found = connect.backend(context).envs.prune(runs, base, age, needed, chosen)
    return [_view(each, context.name, place) for each in found]


def _view(unused: UnusedEnv, context: str, place: EnvPlace) -> PrunedEnv:
    try:
        known = msgspec.json.decode(unused.definition, type=Definition)
    except MALFORMED:
        known = None
    return PrunedEnv(
        what=unused.what,
        address=unused.address,
        context=context,
        place=place,
        title=known.title if known is not None else "",
        project=known.project if known is not None else "",
        size=unused.kilobytes << 10,
        files=unused.files,
        used=unused.used,
    )
