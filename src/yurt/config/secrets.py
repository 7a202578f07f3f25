"""Where the values of secrets come from: a variable of the environment, else the system's keyring.

Nothing here writes a value anywhere but into the keyring, and no message holds one.
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
"""Under which service the keyring keeps the list of names, which it cannot give itself."""

CODED = "base64:"
"""Before a value that is no text; keyrings keep nothing else."""


def check_name(name: str) -> str:
    """The name, if it can be that of a secret; else UserError."""
    try:
        secrets.check_name(name)
    except ValueError as error:
        raise UserError(f"{error}, so no secret can have it", code="usage", hint="for example HF_TOKEN") from None
    return name


def values_of(names: Sequence[str]) -> dict[str, bytes]:
    """The values of secrets as they are now. UserError where one is not to be found, or cannot be handed over."""
    if not names:
        return {}
    _leave_no_core()
    found = {name: _value_of(name) for name in names}
    try:
        secrets.check_values(found)
    except ValueError as error:
        raise UserError(str(error), code="secret-invalid", hint="hand over a key, and fetch the rest with it") from None
    return found


def _value_of(name: str) -> bytes:
    value = os.environb.get(name.encode())
    why = ""
    if value is None:
        try:
            value = read(name)
        except RefusedError as error:
            why = f" ({error.message})" if error.hint else ""
    if value is None:
        raise UserError(
            f"secret {name} is not in the environment or the keyring of this yurt{why}",
            code="secret-missing",
            hint=f"yurt secret set {name}, or export {name}",
        )
    return value


def keep(name: str, value: bytes) -> None:
    """Put a value into the keyring. RefusedError where there is none, or it cannot be used."""
    _leave_no_core()
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
            f"the keyring did not keep {name}; export the variable instead",
            code="keyring-unavailable",
            hint="keyring diagnose",
        )


def has_keyring() -> bool:
    """Whether this machine has a keyring, usable or not."""
    import keyring
    from keyring.backends.fail import Keyring

    return not isinstance(keyring.get_keyring(), Keyring)


def kept() -> list[str]:
    """The names of the secrets in the keyring."""
    names: list[str] = _call("", _names)
    return [name for name in names if read(name) is not None]


def forget(name: str) -> bool:
    """Take a value out of the keyring; False if it was not in it."""
    with locked(paths.data_home() / "secrets"):
        there = read(name) is not None
        if there:
            _call(name, lambda ring: ring.delete_password(SERVICE, name))
        names = _call(name, _names)
        if name in names:
            rest = "\n".join(each for each in names if each != name)
            _call(
                name,
                lambda ring: ring.set_password(NAMES, SERVICE, rest) if rest else ring.delete_password(NAMES, SERVICE),
            )
    return there


def _names(ring: Any) -> list[str]:
    return (ring.get_password(NAMES, SERVICE) or "").split()


def read(name: str) -> bytes | None:
    """The value in the keyring; None if it is not in it. RefusedError where there is no keyring."""
    text: str | None = _call(name, lambda ring: ring.get_password(SERVICE, name))
    if text is None:
        return None
    return base64.b64decode(text.removeprefix(CODED)) if text.startswith(CODED) else text.encode()


def _call(name: str, what: Callable[[Any], Any]) -> Any:
    """Something asked of the keyring. RefusedError, with a hint only where there is one that could be mended."""
    import keyring
    from keyring.errors import KeyringError, NoKeyringError

    instead = f"export {name or 'the variable'} instead"
    try:
        return what(keyring.get_keyring())
    except NoKeyringError:
        raise RefusedError(f"there is no keyring on this machine; {instead}", code="keyring-unavailable") from None
    except (KeyringError, OSError) as error:
        said = type(error).__name__ if isinstance(error, OSError) else " ".join(str(error).split()).rstrip(".!")
        raise RefusedError(
            f"the keyring cannot be used: {said or type(error).__name__}; {instead}",
            code="keyring-unavailable",
            hint="keyring diagnose",
        ) from None


def _leave_no_core() -> None:
    """Should this process crash, no file of its memory is left."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
