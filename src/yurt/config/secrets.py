"""Finds the values of secrets: in the environment, else in the system keyring.

Values are written only to the keyring, and no message contains a value.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from typing import Any

from yurt.config import paths
from yurt.config.lock import locked
from yurt.errors import RefusedError, UserError
from yurt.model import secrets

SERVICE = "yurt"
NAMES = "yurt: names of secrets"
"""The keyring service that stores the list of names, because a keyring cannot list its entries."""

CODED = "base64:"
"""Prefix of an encoded value: keyrings store only text."""


TOO_LONG = "pass a short key as the secret, and use it in the run to fetch the large value"


def check_name(name: str) -> str:
    """Return the name. UserError if it is not valid for a secret."""
    try:
        secrets.check_name(name)
    except ValueError as error:
        raise UserError(f"invalid secret name: {error}", code="usage", hint="for example: `HF_TOKEN`") from None
    return name


def values_of(names: Sequence[str]) -> dict[str, bytes]:
    """Return the current values of secrets. UserError if one is missing or cannot be passed to a run."""
    if not names:
        return {}
    _disable_core_dumps()
    found = {name: _value_of(name) for name in names}
    try:
        secrets.check_values(found)
    except ValueError as error:
        raise UserError(str(error), code="secret-invalid", hint=TOO_LONG) from None
    return found


def _value_of(name: str) -> bytes:
    value = os.environb.get(name.encode())
    why = ""
    if value is None:
        try:
            value = read(name)
        except RefusedError as error:
            why = f" ({error.message})" if has_keyring() else ""
    if value is None:
        raise UserError(
            f"secret '{name}' is neither in the environment nor in the keyring" + why,
            code="secret-missing",
            hint=f"run `yurt secret set {name}`, or set the variable with `export {name}=...`",
        )
    return value


def keep(name: str, value: bytes) -> None:
    """Store a value in the keyring. RefusedError if there is no usable keyring."""
    _disable_core_dumps()
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or text.startswith(CODED):
        text = CODED + base64.b64encode(value).decode()
    with locked(paths.data_home() / "secrets"):
        _call(name, lambda ring: ring.set_password(NAMES, SERVICE, "\n".join(sorted({*_names(ring), name}))))
        _call(name, lambda ring: ring.set_password(SERVICE, name, text))
    if read(name) != value:
        raise RefusedError(
            f"the keyring did not store secret '{name}'",
            code="keyring-unavailable",
            hint=f"check it with `keyring diagnose`, or set the variable with `export {name}=...`",
        )


def has_keyring() -> bool:
    """Whether this machine has a keyring, even an unusable one."""
    import keyring
    from keyring.backends.fail import Keyring

    return not isinstance(keyring.get_keyring(), Keyring)


def kept() -> list[str]:
    """Return the names of the secrets in the keyring."""
    names: list[str] = _call("", _names)
    return [name for name in names if read(name) is not None]


def forget(name: str) -> bool:
    """Remove a value from the keyring; False if it was not stored."""
    with locked(paths.data_home() / "secrets"):
        stored = read(name) is not None
        if stored:
            _call(name, lambda ring: ring.delete_password(SERVICE, name))
        names = _call(name, _names)
        if name in names:
            rest = "\n".join(each for each in names if each != name)
            _call(
                name,
                lambda ring: ring.set_password(NAMES, SERVICE, rest) if rest else ring.delete_password(NAMES, SERVICE),
            )
    return stored


def _names(ring: Any) -> list[str]:
    return (ring.get_password(NAMES, SERVICE) or "").split()


def read(name: str) -> bytes | None:
    """Return the value in the keyring; None if it is not stored. RefusedError if there is no usable keyring."""
    text: str | None = _call(name, lambda ring: ring.get_password(SERVICE, name))
    if text is None:
        return None
    return base64.b64decode(text.removeprefix(CODED)) if text.startswith(CODED) else text.encode()


def _call(name: str, operation: Callable[[Any], Any]) -> Any:
    """Run an operation on the keyring. RefusedError if there is no keyring or it fails.

    It is repeated once: a keyring service that is busy or has just been started may fail. Not if the keyring is locked:
    the user would be asked again.
    """
    import keyring
    from keyring.errors import KeyringError, KeyringLocked, NoKeyringError

    name = name or "NAME"
    export = f"set the variable with `export {name}=...`"
    try:
        try:
            return operation(keyring.get_keyring())
        except (NoKeyringError, KeyringLocked):
            raise
        except (KeyringError, OSError):
            return operation(keyring.get_keyring())
    except NoKeyringError:
        raise RefusedError("this machine has no keyring", code="keyring-unavailable", hint=export) from None
    except (KeyringError, OSError) as error:
        said = "" if isinstance(error, OSError) else " ".join(str(error).split()).rstrip(".!")
        reason = said or type(error).__name__
        raise RefusedError(
            f"cannot use the keyring: {reason}",
            code="keyring-unavailable",
            hint=f"check it with `keyring diagnose`, or set the variable with `export {name}=...`",
        ) from None


def _disable_core_dumps() -> None:
    """Prevent a crash of this process from writing its memory to a file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
