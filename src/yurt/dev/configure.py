"""Makes the configuration of a dev node from its settings: the value of YURT_DEV for the program that holds it."""

from __future__ import annotations

from typing import Any

from yurt.backends.kinds import kind_of
from yurt.contexts import folders
from yurt.dev.desks import DEFAULT
from yurt.errors import RefusedError, UserError
from yurt.model import layout
from yurt.model.context import Context
from yurt.model.facts import Facts
from yurt.model.resources import parse_memory, parse_seconds, parse_time

KEEP = {"last": 10, "days": 7, "weeks": 4}
INTERVAL, IDLE = 1800, 7200
HOURS = 8
"""The time limit of a dev node if no setting gives one."""


def configuration(
    wanted: Context, facts: Facts | None, name: str, *, source: dict[str, Any], restore: int, minutes: int | None
) -> dict[str, Any]:
    """Return the configuration of the dev node `name`. `wanted`: the context with all settings resolved.

    UserError: a setting is invalid. RefusedError: the site has no such storage area.
    """
    return {
        "name": name,
        "workspace": wanted.dev_workspace or ("work" if name == DEFAULT else f"work-{name}"),
        "root": folders.expand_locally("~/yurt-dev") if kind_of(wanted.type).here else "",
        "backups": backups_folder(wanted, facts, name),
        "interval": parse_seconds(wanted.dev_interval) if wanted.dev_interval else INTERVAL,
        "compression": wanted.dev_compression or "auto",
        "keep": _keep(wanted),
        "limit": parse_memory(wanted.dev_limit) * 1024 * 1024 if wanted.dev_limit else 0,
        "source": source,
        "restore": restore,
        "idle": parse_seconds(wanted.dev_idle) if wanted.dev_idle else IDLE,
        "idle_release": wanted.dev_idle_release,
        "limit_seconds": None if minutes is None else minutes * 60,
        "context": wanted.name,
    }


def backups_folder(wanted: Context, facts: Facts | None, name: str) -> str:
    """Return the folder on the shared disk with all versions of the workspace of a dev node."""
    return layout.workspace(base_folder(wanted, facts), name)


def base_folder(wanted: Context, facts: Facts | None) -> str:
    """Return yurt's folder on the shared disk that contains the backups of all workspaces. Errors as for the others."""
    tier = wanted.dev_tier
    if not tier:
        return folders.base_folder(wanted, facts)
    if tier[0] in "/~$":
        return layout.base(folders.expand(wanted, facts, tier, "dev_tier").rstrip("/"))
    tiers = {each.name: each.path for each in facts.tiers if each.writable} if facts is not None else {}
    if tier not in tiers:
        raise RefusedError(
            f"dev_tier: {wanted.name} has no writable storage area '{tier}'",
            code="impossible",
            hint=f"use {' or '.join(f'`--tier {each}`' for each in tiers)}" if tiers else "use an absolute folder",
        )
    return layout.base(tiers[tier].rstrip("/"))


def _keep(wanted: Context) -> dict[str, int]:
    found = dict(KEEP)
    for key, value in wanted.dev_keep.items():
        if key not in KEEP or not value.isdigit() or (key == "last" and int(value) < 1):
            raise UserError(
                f"dev_keep: '{key}: {value}' is not valid: the keys are last (at least 1), days and weeks",
                code="config-invalid",
                hint="for example: `dev_keep: {last: 10, days: 7, weeks: 4}`",
            )
        found[key] = int(value)
    return found


def time_limit(wanted: Context, facts: Facts | None) -> tuple[int | None, str]:
    """Return the time limit of a dev node in minutes, and a note if no setting gives one and it was cut.

    None: this machine, where a dev node has a limit only if a setting gives one.
    """
    if wanted.time is not None:
        return parse_time(wanted.time), ""
    if facts is None:
        return None, ""
    usual = HOURS * 60
    partition = facts.partition_of(wanted.partition)
    most = partition.max_minutes if partition is not None else None
    if most is None or most >= usual:
        return usual, ""
    assert partition is not None
    return most, f"the time limit is {_span(most)}, the maximum of partition {partition.name}"


def _span(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours and rest else f"{hours} h" if hours else f"{rest} min"
