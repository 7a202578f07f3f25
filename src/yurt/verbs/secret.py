"""secret: values for runs, kept in the system's keyring."""

from __future__ import annotations

import os

import msgspec

from yurt.config import secrets as config
from yurt.errors import NotFoundError, UserError
from yurt.model import secrets
from yurt.verbs.result import Result


class Secret(msgspec.Struct, frozen=True):
    """A secret in the keyring; of its value nothing is said."""

    name: str
    environment: bool
    """Whether a variable of that name is set here now, which goes before the keyring."""


def check_ready(name: str) -> None:
    """An error, before a person is asked for a value, if it could not be kept."""
    config.read(config.check_name(name))


def keep(name: str, value: bytes) -> Result[Secret]:
    """Keep a value, in place of any before. RefusedError where there is no keyring."""
    if not value:
        raise UserError(
            f"no value for {name} was given; an empty one needs no keyring", code="usage", hint=f"export {name}="
        )
    try:
        secrets.check_values({name: value})
    except ValueError as error:
        raise UserError(str(error), code="secret-invalid") from None
    config.keep(config.check_name(name), value)
    return Result(kind="secret-set", data=_seen(name))


NO_KEYRING = (
    "there is no keyring on this machine: install one (gnome-keyring or kwalletmanager) and log in on its desktop,"
    " or export the variables instead"
)


def kept() -> Result[list[Secret]]:
    """The secrets in the keyring. No keyring is a warning; RefusedError where there is one that cannot be used."""
    if not config.has_keyring():
        return Result(kind="secrets", data=[], warnings=[NO_KEYRING])
    return Result(kind="secrets", data=[_seen(name) for name in config.kept()])


def forget(name: str) -> Result[Secret]:
    """Take a secret out of the keyring. NotFoundError if it is not in it."""
    if not config.forget(config.check_name(name)):
        raise NotFoundError(f"the keyring has no secret {name} of yurt's", code="not-found", hint="yurt secret list")
    return Result(kind="secret-removed", data=_seen(name))


def _seen(name: str) -> Secret:
    return Secret(name, name in os.environ)
