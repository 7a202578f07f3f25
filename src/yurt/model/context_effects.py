"""Keys of a context that run programs or send files, shown before a context of somebody else is imported. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from yurt.model.context import LOCAL, Context
from yurt.model.settings import TABLE

EFFECTS: dict[str, str] = {row.key: row.effect for row in sorted(TABLE, key=lambda row: not row.site) if row.effect}
"""What the value of a key runs or sends; keys that affect this machine first."""


class Effect(msgspec.Struct, frozen=True):
    """A key that runs or sends something, with its value and what it does. `context` is empty for a key of the file."""

    context: str
    key: str
    value: Any
    about: str

    @property
    def line(self) -> str:
        """One line, whatever the value contains."""
        place = f"{self.context}." if self.context else ""
        return f"{place}{self.key}: {msgspec.json.encode(self.value).decode()} ({self.about})"


def effects(new: Context, known: Context | None) -> list[Effect]:
    """Return the effects of a context that the one it replaces, if any, does not have."""
    found = []
    if new.name == LOCAL.name and new.type != LOCAL.type and (known is None or known.type == LOCAL.type):
        about = "replaces the built-in context, which runs on this machine"
        found.append(Effect(new.name, "slurm_url", new.slurm_url or "", about))
    for key, about in EFFECTS.items():
        value = getattr(new, key)
        if value and value != (None if known is None else getattr(known, key)):
            found.append(Effect(new.name, key, value, about))
    return found


def current(name: str) -> Effect:
    """Return the effect of an import that makes a context the current one."""
    return Effect("", "current_context", name, "becomes the current context: commands without --context use it")
