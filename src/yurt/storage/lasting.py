"""Which tier of a context lasts: where results go that the site will delete. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from yurt.errors import NotFoundError, RefusedError, UserError
from yurt.model.storage import TierPlace, TierUse
from yurt.storage.tiers import of_path

LASTING = ("project", "home")
"""Tiers that are meant for files to keep, the best one first."""


def candidates(context: str, known: Sequence[TierPlace], to: str) -> list[TierPlace]:
    """Return the tiers that results may be copied to, the best one first; with `to`, only that one."""
    if not to:
        found = {each.name: each for each in known if each.path and each.purge_days is None}
        return [found[name] for name in LASTING if name in found]
    for each in known:
        if each.name == to and each.path:
            return [each]
    names = ", ".join(each.name for each in known if each.path) or "none"
    raise NotFoundError(
        f"{context} has no storage tier '{to}'; it has: {names}",
        code="not-found",
        hint=f"`yurt storage show {context}` lists them; add your own with the context key `tiers`",
    )


def chosen(context: str, some: Sequence[TierPlace], uses: Sequence[TierUse], instead: str) -> tuple[TierPlace, TierUse]:
    """Return the first tier that exists and is writable, and how full it is. RefusedError if there is none.

    `instead`: what to type if there is none.
    """
    by_name = {each.name: each for each in uses}
    for place in some:
        use = by_name.get(place.name)
        if use is not None and use.there and use.writable:
            return place, use
    if not some:
        what = f"no tier of {context} is known to last: it has neither project nor home"
    else:
        what = f"{context}: {' and '.join(f'{each.name} ({each.path})' for each in some)} cannot be written to"
    raise RefusedError(what, code="no-lasting-tier", hint=instead)


def check_not_there(context: str, known: Sequence[TierPlace], path: str, label: str, to: str) -> None:
    """UserError if a path is on a lasting tier, or on the tier that it would be copied to."""
    own = of_path(known, path)
    if own is not None and own.name == to:
        raise UserError(
            f"{label} is on {to} already", code="usage", hint=f"`yurt storage show {context}` lists other tiers"
        )
    if own is not None and not to and own.purge_days is None and own.name in (*LASTING, "archive"):
        raise UserError(
            f"{label} is on {own.name}, from which {context} deletes nothing as far as yurt knows",
            code="usage",
            hint="copy it to another tier with `--to TIER`",
        )
