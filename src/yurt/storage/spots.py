"""A place on a context, found from its name: the context, its host, and the absolute path."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import cached_property

import msgspec

from yurt.backends.kinds import kind_of
from yurt.backends.registry import host_of
from yurt.config import contexts, paths
from yurt.contexts import connect, folders
from yurt.contexts.facts import facts_if_probed
from yurt.errors import NotFoundError, UserError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.place import FORMS, PlaceName, parse
from yurt.model.progress import Watch, unwatched
from yurt.storage.places import path_of
from yurt.storage.tiers import tiers
from yurt.transport.base import Host


class Spot(msgspec.Struct, frozen=True, dict=True):
    """A file or folder of a context."""

    context: Context
    facts: Facts | None
    path: str
    inside: bool
    """Whether what is copied there keeps its own name."""

    def __str__(self) -> str:
        return f"{self.context.name}:{self.path}"

    @property
    def here(self) -> bool:
        return kind_of(self.context.type).here

    @cached_property
    def host(self) -> Host:
        return host_of(self.context)

    def below(self, name: str) -> Spot:
        """Return the place of this name in this folder."""
        return Spot(self.context, self.facts, posixpath.join(self.path, name), inside=False)

    def own_folders(self) -> list[str]:
        """Return yurt's own folders on the context."""
        found = [folders.base_folder(self.context, self.facts)]
        if self.here:
            return [*found, str(paths.config_home())]
        home = (self.facts.variables if self.facts is not None else {}).get("HOME")
        return [*found, layout.home(home)] if home else found

    def kept_folders(self) -> list[str]:
        """Return the folders that are never removed: the root, the home and the tiers."""
        home = (self.facts.variables if self.facts is not None else {}).get("HOME", "")
        return ["/", *([home] if home else []), *(each.path for each in tiers(self.context, self.facts) if each.path)]

    def guard(self, names: Sequence[str] = (), *, delete: bool = False, sources: Sequence[str] = ()) -> str:
        """Return a script that exits if a copy to this place, or of these names to this folder, must not be."""
        from yurt.transport import protected

        paths = [posixpath.join(self.path, each) for each in names] or [self.path]
        return protected.script(paths, own=self.own_folders(), kept=self.kept_folders(), sources=sources, delete=delete)


def spot(text: str, context: str, *, watch: Watch = unwatched) -> Spot | None:
    """Return the place that a text names, on this context unless it names one; None for a path of this machine.

    NotFoundError: the context or its tier does not exist. UnreachableError: the site is not probed and not reached.
    """
    named = parse(text)
    if named is None:
        return None
    place = contexts.site(named.context or contexts.current_name(context))
    facts = facts_if_probed(place, watch=watch)
    try:
        found = Spot(place, facts, path_of(place, facts, named), named.inside)
    except NotFoundError as error:
        raise _of_context(named) or error from None
    connect.check_responds(place, found.host)
    return found


def _of_context(named: PlaceName) -> UserError | None:
    """Return the error for a name such as `alpha:data`, if alpha is a context and not a tier."""
    word = named.tier
    if named.context or word not in contexts.load(contexts.default_file()).contexts:
        return None
    place = contexts.site(word)
    known = [each.name for each in tiers(place, facts_if_probed(place)) if each.path] or ["home"]
    tier = "project" if "project" in known else known[0]
    return UserError(
        f"'{named}' names the context {word}, but no storage tier of it",
        code="usage",
        hint=f"use `{word}:{tier}:{named.path}`; `yurt storage show {word}` lists the tiers",
    )


def must_be_spot(text: str, context: str, *, watch: Watch = unwatched) -> Spot:
    """Return the place that a text names. UserError if it is a path of this machine."""
    found = spot(text, context, watch=watch)
    if found is None:
        raise UserError(
            f"'{text}' does not name a place on a context",
            code="usage",
            hint=f"use {FORMS}, for example `project:datasets`; `yurt storage` lists the tiers",
        )
    return found
