"""Finds the path of a named place, such as `project:datasets/cifar`, on a context."""

from __future__ import annotations

import posixpath

from yurt.contexts import folders
from yurt.errors import NotFoundError, UserError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.place import PlaceName
from yurt.storage.tiers import tiers


def path_of(context: Context, facts: Facts | None, place: PlaceName) -> str:
    """Return the absolute path of a place on a context. UserError if the context has no such tier."""
    if ".." in place.path.split("/"):
        raise UserError(f"'{place}' contains '..'", code="usage", hint="name the folder itself")
    if not place.path.isprintable():
        raise UserError(
            f"{place.path!a} contains an unprintable character",
            code="usage",
            hint="name the folder that contains it, which can be copied as a whole",
        )
    if not place.tier:
        return posixpath.normpath(folders.expand(context, facts, place.path, "the path"))
    known = {each.name: each for each in tiers(context, facts)}
    if place.tier not in known:
        raise NotFoundError(
            f"{context.name} has no storage tier '{place.tier}'; it has: {', '.join(known) or 'none'}",
            code="not-found",
            hint=f"`yurt storage show {context.name}` lists them; add your own with the context key `tiers`",
        )
    tier = known[place.tier]
    if not tier.path:
        raise UserError(
            f"'{place}' is on the disk of each node, which only its jobs reach",
            code="usage",
            hint="use another tier; `yurt storage` lists them",
        )
    return posixpath.normpath(posixpath.join(tier.path, place.path))
