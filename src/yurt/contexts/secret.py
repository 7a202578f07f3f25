"""secret: manage secret values for runs in the system keyring."""

from __future__ import annotations

import os

import msgspec

from yurt.config import secrets as config
from yurt.errors import NotFoundError, UserError
from yurt.model import secrets
from yurt.model.result import Result


class Secret(msgspec.Struct, frozen=True):
    """A secret in the keyring, without its value."""

    name: str
    environment: bool
    """Whether an environment variable of this name is set; it takes precedence over the keyring."""


def check_ready(name: str) -> None:
    """Raise an error if a value could not be stored; called before the user types it."""
    config.read(config.check_name(name))


def keep(name: str, value: bytes) -> Result[Secret]:
    """Store a value, and replace an earlier one. RefusedError: there is no keyring."""
    if not value:
        raise UserError(
            f"the value of secret '{name}' is empty",
            code="usage",
            hint=f"to pass an empty value, set it in the environment with `export {name}=`",
        )
    try:
        secrets.check_values({name: value})
    except ValueError as error:
        raise UserError(str(error), code="secret-invalid", hint=config.TOO_LONG) from None
    config.keep(config.check_name(name), value)
    return Result(kind="secret-set", data=_seen(name))


NO_KEYRING = (
    "this machine has no keyring; install gnome-keyring or kwalletmanager and log in to the desktop,"
    " or export the variables in your shell"
)


def kept() -> Result[list[Secret]]:
    """List the secrets in the keyring. No keyring is a warning; RefusedError: the keyring cannot be used."""
    if not config.has_keyring():
        return Result(kind="secrets", data=[], warnings=[NO_KEYRING])
    return Result(kind="secrets", data=[_seen(name) for name in config.kept()])


def forget(name: str) -> Result[Secret]:
    """Remove a secret from the keyring. NotFoundError: it is not there."""
    if not config.forget(config.check_name(name)):
        raise NotFoundError(
            f"secret '{name}' not found in the keyring", code="not-found", hint="list secrets with `yurt secret list`"
        )
    return Result(kind="secret-removed", data=_seen(name))


def _seen(name: str) -> Secret:
    return Secret(name, name in os.environ)
