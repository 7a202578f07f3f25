"""Obtains the profile that a user names: a known one, a file, or an https address; saves it in the folder `sites`.

The text of a profile is data: nothing in it is executed.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from yurt.config import paths
from yurt.config.text import text_of
from yurt.contexts.profiles import files, find
from yurt.contexts.profiles.find import Known
from yurt.errors import NotFoundError, UnreachableError, UserError

PATIENCE = 15.0
"""Seconds to wait for the server of a profile."""


def is_address(named: str) -> bool:
    return "://" in named


def obtain(named: str) -> tuple[Known, str]:
    """Return the profile of a name, a file or an address, and its text if it is not one of the known profiles.

    NotFoundError: there is none. UserError: it is invalid. UnreachableError: the server does not respond.
    """
    if is_address(named):
        text = _download(named)
        return Known(files.parse(text, named, base=find.bundled), named), text
    if "/" in named or named.endswith((".yaml", ".yml")):
        file = Path(named).expanduser()
        if not file.exists():
            raise NotFoundError(f"profile '{named}' not found", code="not-found", hint="check the path")
        text = text_of(file)
        return Known(files.parse(text, file, base=find.bundled), str(file)), text
    known = find.named(named)
    if known is None:
        raise NotFoundError(
            f"profile '{named}' not found", code="not-found", hint="run `yurt context profiles` to see all profiles"
        )
    return known, ""


def save(known: Known, text: str) -> Path:
    """Save the text of a profile, mode 0600. UserError if the folder has another profile with this name."""
    file = find.folder() / f"{known.profile.name}.yaml"
    if not text.startswith("# from "):
        text = f"# from {known.origin}\n{text}"
    if file.exists() and text_of(file) != text and not _same(file, known):
        raise UserError(
            f"{file} is another profile with the name '{known.profile.name}'",
            code="config-invalid",
            hint=f"remove it with `rm {paths.as_typed(file)}`, or rename the new profile",
        )
    try:
        paths.write_private(file, text.encode())
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", code="config-unwritable") from None
    return file


def _same(file: Path, known: Known) -> bool:
    """Whether a file was saved from the same address or file."""
    return text_of(file).startswith(f"# from {known.origin}\n")


def _download(address: str) -> str:
    if not address.startswith("https://"):
        raise UserError(
            f"the address of a profile must begin with https://: '{address}'",
            code="usage",
            hint="download the file, check it, and name the file instead",
        )
    try:
        with _https_only().open(address, timeout=PATIENCE) as answer:
            content: bytes = answer.read(files.LARGEST + 1)
        return content.decode()
    except urllib.error.HTTPError as error:
        text = f"{address}: {error.code} {error.reason}"
        raise NotFoundError(text, code="not-found", hint="check the address") from None
    except UnicodeDecodeError:
        raise UserError(f"{address} is not a text file", code="config-invalid") from None
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or cause
        hint = "check the address and your network"
        raise UnreachableError(f"cannot download {address}: {reason}", code="connection-lost", hint=hint) from None


def _https_only() -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect to another scheme."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener
