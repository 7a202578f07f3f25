"""A context: a named place to run, as it stands in contexts.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

ContextType = Literal["local", "slurm", "kubernetes"]


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where and how to run. `name` is the key in the file and does not stand in the body."""

    name: str
    type: Annotated[ContextType, Meta(description="What kind of place it is.")]
    slurm_url: Annotated[str | None, Meta(description="user@host of the login node, or an alias ssh knows.")] = None
    ssh_options: Annotated[
        tuple[str, ...], Meta(description="Further arguments for ssh, such as -F with a config of its own.")
    ] = ()
    storage_dir: Annotated[
        str | None, Meta(description="Where yurt keeps runs there; environment variables are resolved there.")
    ] = None
    partition: Annotated[str | None, Meta(description="The partition jobs go to unless a run names another.")] = None
    account: Annotated[str | None, Meta(description="The account jobs are charged to.")] = None
    lab: Annotated[str | None, Meta(description="The lab that made this context, and may renew or remove it.")] = None


class ContextsFile(msgspec.Struct, frozen=True):
    """What contexts.yaml says."""

    contexts: dict[str, Context] = {}
    current_context: str | None = None
