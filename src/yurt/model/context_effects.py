"""Keys of a context that run programs or send files: a user sees them before they accept another user's context. Pure.

Every other key only names or limits what a run requests.
"""

from __future__ import annotations

from typing import Any

import msgspec

from yurt.model.context import LOCAL, Context

EFFECTS: dict[str, str] = {
    "ssh_command": "runs on this machine instead of ssh",
    "ssh_options": "passed to ssh on this machine; can run other programs and send data elsewhere",
    "paths_to_copy": "files of this machine that are uploaded with the code",
    "sbatch_options": "passed to sbatch on the site",
    "modules_to_load": "loaded in every job",
    "after_module_load_cmd": "runs in every job",
    "venv": "activated in every job",
    "conda": "activated in every job",
    "container": "every job runs in it",
    "variables": "set in every job; can change which programs run",
}

NO_EFFECT = (
    *("name", "type", "slurm_url", "storage_dir", "scratch_dir", "partition", "account", "qos", "user_id", "resources"),
    *("time", "ntasks", "nodelist", "exclude_nodes", "cmd_type", "track", "tags", "env"),
    *("requirements_file", "exclude", "registry_url", "lab"),
)


class Effect(msgspec.Struct, frozen=True):
    """A key that runs or sends something, with its value and what it does."""

    context: str
    key: str
    value: Any
    about: str

    @property
    def line(self) -> str:
        """One line, whatever the value contains."""
        return f"{self.context}.{self.key}: {msgspec.json.encode(self.value).decode()} ({self.about})"


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
