"""context profiles: the site profiles that yurt knows, and the one that a user names for a new context."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import msgspec

from yurt.contexts import profiles
from yurt.contexts.profiles import obtain
from yurt.contexts.profiles.find import Known
from yurt.errors import UserError
from yurt.model.result import Result


class ProfileListed(msgspec.Struct, frozen=True):
    """One profile in the list."""

    name: str
    """Name of the profile."""
    title: str
    """Name of the cluster, and who runs it."""
    origin: str
    """Where the profile comes from: `yurt`, a file, an address or a package."""
    read: datetime.date
    """When the newest of its sources was read."""


def list_() -> Result[list[ProfileListed]]:
    """List all profiles by name. Invalid files are warnings."""
    found, warnings = profiles.every()
    rows = [ProfileListed(each.profile.name, each.profile.title, each.origin, each.profile.read) for each in found]
    return Result(kind="profiles", data=sorted(rows, key=lambda each: each.name), warnings=warnings)


def show(name: str) -> Result[Known]:
    """Return one profile, by its name, file or address. Errors as in `yurt.contexts.profiles.obtain`."""
    known, _text = obtain.obtain(name)
    return Result(kind="profile", data=known)


def choose(named: str, confirmed: Callable[[Known], bool]) -> Known:
    """Return the profile that the user names for a new context; save it if it comes from a file or an address.

    UserError if a downloaded profile is not `confirmed`; nothing is saved.
    """
    known, text = obtain.obtain(named)
    if not text:
        return known
    if obtain.is_address(named) and not confirmed(known):
        raise UserError(
            f"the profile from {named} is not confirmed",
            code="not-confirmed",
            hint=f"look at it with `yurt context profiles {named}`; if you trust it, add `--yes`",
        )
    obtain.save(known, text)
    return known
