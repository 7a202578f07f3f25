"""The tiers of a context: those that the probe found, what its site profile says of them, and those of the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from yurt.backends.kinds import kind_of
from yurt.contexts import folders
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.quotas import read_amount
from yurt.model.storage import Shared, TierPlace

if TYPE_CHECKING:
    from yurt.model.profile import StorageArea

ORDER = ("home", "project", "scratch", "tmpdir", "archive")

PURPOSES = {
    "home": "code and small files",
    "project": "data that you share and keep",
    "scratch": "files of jobs",
    "tmpdir": "files of one job, on its node",
    "archive": "files that you rarely use",
}

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


def tiers(context: Context, facts: Facts | None) -> list[TierPlace]:
    """Return the tiers of a context. UserError if a setting about them is invalid."""
    if kind_of(context.type).here:
        here = folders.expand_locally("~")
        found = {"home": TierPlace(name="home", path=here, variable="HOME", purpose=PURPOSES["home"], shared="here")}
    else:
        found = _probed(facts)
    for name, path in context.tiers.items():
        _check(context, "tiers", name, NAME.fullmatch(name) is not None and path[:1] in ("/", "~", "$"))
        place = folders.expand(context, facts, path, "tiers")
        shared: Shared = "here" if kind_of(context.type).here else "all"
        known = found.get(name) or TierPlace(name=name, path=place, purpose=PURPOSES.get(name, ""), shared=shared)
        found[name] = msgspec.structs.replace(known, path=place, variable="")
    areas = _areas(context)
    return [_described(context, each, areas.get(each.name)) for each in sorted(found.values(), key=_place)]


def of_path(known: Sequence[TierPlace], path: str) -> TierPlace | None:
    """Return the tier that contains a path: the one with the longest folder."""
    inside = [
        each for each in known if each.path and (path == each.path or path.startswith(each.path.rstrip("/") + "/"))
    ]
    return max(inside, key=lambda each: len(each.path), default=None)


def _probed(facts: Facts | None) -> dict[str, TierPlace]:
    if facts is None:
        return {}
    found = {
        each.name: TierPlace(
            name=each.name, path=each.path, variable=each.variable, purpose=PURPOSES.get(each.name, "")
        )
        for each in facts.tiers
    }
    node = facts.node
    if node is not None and (node.tmpdir or node.local_disk):
        variable = "SLURM_TMPDIR" if node.tmpdir else ""
        found["tmpdir"] = TierPlace(
            name="tmpdir", path="", variable=variable, purpose=PURPOSES["tmpdir"], shared="node"
        )
    return found


def _areas(context: Context) -> dict[str, StorageArea]:
    if not context.profile:
        return {}
    from yurt.contexts.profiles import find

    known = find.named(context.profile)
    return dict(known.profile.storage) if known is not None else {}


def _described(context: Context, tier: TierPlace, area: StorageArea | None) -> TierPlace:
    """Add what the profile and the context say of a tier."""
    fields: dict[str, Any] = {}
    if area is not None:
        fields["purpose"] = area.purpose or tier.purpose
        fields["said_quota"] = area.quota or ""
        fields["backed_up"] = area.backed_up
        if area.purge is not None:
            fields["purge_days"], fields["purge_rule"] = area.purge.days, area.purge.rule
    if tier.name in context.tier_purge:
        days = context.tier_purge[tier.name].removesuffix("d")
        _check(
            context, "tier_purge", tier.name, days.isdigit() and int(days) > 0, "; only days are allowed, such as 3d"
        )
        fields["purge_days"] = int(days)
    if tier.name in context.tier_quota:
        fields["quota"], fields["files_quota"] = _quota(context, tier.name, context.tier_quota[tier.name])
    return msgspec.structs.replace(tier, **fields)


def _quota(context: Context, name: str, text: str) -> tuple[int | None, int | None]:
    """Return the bytes and the files of a quota such as `1T`, `500000 files` or `1T 500000 files`."""
    found = read_amount(text)
    _check(context, "tier_quota", name, found is not None)
    assert found is not None
    return found


def unknown_names(context: Context, known: Sequence[TierPlace]) -> list[str]:
    """Return a warning for each setting about a tier that the context does not have."""
    names = {each.name for each in known}
    listed = ", ".join(each.name for each in known) or "none"
    return [
        f"{key} of context '{context.name}' names the tier '{name}', which it does not have; it has: {listed}"
        for key, value in (("tier_purge", context.tier_purge), ("tier_quota", context.tier_quota))
        for name in value
        if name not in names
    ]


def _check(context: Context, key: str, name: str, valid: bool, more: str = "") -> None:
    if not valid:
        examples = {"tiers": "{data: /data/me}", "tier_purge": "{scratch: 30d}", "tier_quota": "{scratch: 1T}"}
        raise UserError(
            f"{key} of context '{context.name}': the value for '{name}' is not valid{more}",
            code="config-invalid",
            hint=f"for example: `{key}: {examples[key]}`; change it with `yurt context edit {context.name}`",
        )


def _place(tier: TierPlace) -> tuple[int, str]:
    return (ORDER.index(tier.name) if tier.name in ORDER else len(ORDER), tier.name)
