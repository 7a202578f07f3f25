"""The cached facts of each context, stored beside contexts.yaml with the time of the probe."""

import time
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.errors import UserError
from yurt.model.context import Context
from yurt.model.facts import Facts

WEEK = 7 * 24 * 3600.0


class Kept(msgspec.Struct, frozen=True):
    """Facts and the address they were probed at; another address is another site."""

    address: list[str]
    facts: Facts


def file_of(name: str) -> Path:
    return paths.config_home() / "facts" / f"{name}.json"


def load(context: Context, *, now: float | None = None) -> Facts | None:
    """Return the cached facts of a context; None if there are none, they are too old, or the address differs."""
    found = last(context)
    if found is None:
        return None
    age = (time.time() if now is None else now) - found.probed_at
    return found if 0 <= age < WEEK else None


def last(context: Context) -> Facts | None:
    """Return the cached facts of a context, also old ones; None if there are none, or the address differs."""
    try:
        kept = msgspec.json.decode(file_of(context.name).read_bytes(), type=Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    return kept.facts if kept.address == address_of(context) else None


def save(context: Context, facts: Facts) -> None:
    """Store facts for a week. UserError if the configuration folder is not writable."""
    try:
        _write(context, facts)
    except OSError as error:
        file = file_of(context.name)
        raise UserError(f"cannot write {file}: {error.strerror}", code="config-unwritable") from None


def _write(context: Context, facts: Facts) -> None:
    paths.write_private(file_of(context.name), msgspec.json.encode(Kept(address_of(context), facts)))


def address_of(context: Context) -> list[str]:
    """Return everything that determines which machine ssh connects to."""
    return [context.slurm_url or "", *context.ssh_command, "", *context.ssh_options]


def forget(name: str) -> None:
    """Delete the cached facts; the next command that needs them probes the site again."""
    file_of(name).unlink(missing_ok=True)
