"""A context: a named place to run, as it stands in contexts.yaml."""

from __future__ import annotations

from typing import Literal

import msgspec

ContextType = Literal["local", "slurm", "kubernetes"]


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where and how to run. `name` is the key in the file and does not stand in the body."""

    name: str
    type: ContextType
    slurm_url: str | None = None
    """user@host of the login node, or an alias ssh knows."""
    ssh_options: tuple[str, ...] = ()
    """Further arguments for ssh, such as -F with a config of its own."""
    storage_dir: str | None = None
    """Where yurt keeps runs on the far side; environment variables are resolved there."""
    partition: str | None = None
    account: str | None = None
    lab: str | None = None
    """The lab that made this context and may renew or remove it."""


class ContextsFile(msgspec.Struct, frozen=True):
    """What contexts.yaml says."""

    contexts: dict[str, Context] = {}
    current_context: str | None = None
