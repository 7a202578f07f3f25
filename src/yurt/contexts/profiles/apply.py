"""Fills in a new context from the profile of its site. What the user gives and what the probe finds take precedence."""

from __future__ import annotations

from typing import Any

import msgspec

from yurt.contexts.profiles.find import Known
from yurt.model.context import Context
from yurt.model.facts import Facts


class Applied(msgspec.Struct, frozen=True):
    """What a profile contributed to a new context."""

    known: Known
    """The profile, and where it comes from."""
    filled: dict[str, Any]
    """The keys that the profile set."""
    differences: list[str]
    """Sentences about what the probe found to be otherwise; the probe takes precedence."""


def apply(wanted: Context, known: Known, facts: Facts | None) -> tuple[Context, Applied]:
    """Return the context with the defaults of a profile for keys that it does not set."""
    default = Context(name=wanted.name, type=wanted.type)
    filled: dict[str, Any] = {}
    differences: list[str] = []
    for key, value in known.profile.context.items():
        if getattr(wanted, key) != getattr(default, key):
            continue
        problem = _problem(key, value, facts) if facts is not None else ""
        if problem:
            differences.append(f"{key} is not set: {problem}")
        else:
            filled[key] = value
    if facts is not None and facts.slurm_version and known.profile.jobs.from_home is not None:
        accepted = not facts.home_refusal
        if accepted != known.profile.jobs.from_home:
            differences.append(f"the site {'accepts' if accepted else 'rejects'} jobs submitted from the home folder")
    changes = msgspec.convert({"name": wanted.name, "type": wanted.type, **filled}, Context)
    new = {key: getattr(changes, key) for key in filled}
    return msgspec.structs.replace(wanted, **new, profile=known.profile.name), Applied(known, filled, differences)


def _problem(key: str, value: Any, facts: Facts) -> str:
    """Return why the value of a key does not fit the site; empty if it fits."""
    if key == "partition" and value not in (names := [each.name for each in facts.partitions]) and names:
        return f"the site has no partition '{value}'"
    if key == "qos" and value not in (names := [each.name for each in facts.qos]) and names:
        return f"the site has no QOS '{value}'"
    if key == "modules_to_load" and not facts.modules:
        return "the site has no modules"
    if key in ("storage_dir", "scratch_dir"):
        try:
            facts.expand(value)
        except KeyError as error:
            return f"${error.args[0]} is not set on the site"
    return ""
