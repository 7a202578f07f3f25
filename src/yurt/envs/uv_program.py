"""Runs uv on this machine: without the settings of an active environment or of the folder that it runs in, and without
installing a Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from yurt import private
from yurt.config import paths
from yurt.envs import inert_python, uv_config
from yurt.envs.declared import Declared
from yurt.errors import UserError

KEPT = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|TZ|LANG|LC_\w+|XDG_\w+|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|KRB5\w+"
    r"|SSL_CERT_\w+|SSL_CLIENT_CERT|CURL_CA_BUNDLE|NO_PROXY|no_proxy|NETRC|PYTHON_KEYRING_BACKEND|LD_LIBRARY_PATH"
    r"|SSH_A\w+|GIT_SS[HL]\w*|GIT_ASKPASS|GIT_CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)"
    r"|UV_(?!PYTHON|PROJECT|LOCKED|FROZEN|CONFIG_FILE|NO_CONFIG|INDEX(?!_STRATEGY)|DEFAULT_INDEX|EXTRA_INDEX|FIND_LINKS"
    r"|PUBLISH|\w*(?:TOKEN|PASSWORD|USERNAME|SECRET|MIRROR))\w+"
)
"""The variables that uv gets, and the programs that it starts: git, ssh, keyring. uv expands variables in the addresses
that a package names, so it gets none with a secret. Those about indexes are in its settings file."""

PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")
"""They can contain passwords. uv reads them in lower case, too, and expands only names in capital letters."""

QUIET = {"NO_COLOR": "1", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never", "LC_ALL": "C.UTF-8"}
"""uv would download the Python of the site, to build packages with it; the one that runs yurt can do that."""


DEFAULT_LOGIN = re.compile(r"(?:^|\s)default\s+(?=login|user|account|password)")
"""The entry of a netrc that is for no host in particular. It is the last one."""


class Done(msgspec.Struct, frozen=True):
    code: int
    out: str
    err: str


def run(
    arguments: Sequence[str],
    *,
    variables: Mapping[str, str] | None = None,
    folder: Path = Path("/"),
    declared: Declared | None = None,
    inert: bool = False,
    bare: bool = False,
) -> Done:
    """Run uv in a folder and wait for it. UserError if uv is not installed.

    `declared`: what has settings for uv, of which those that choose packages apply. `inert`: uv cannot run any Python,
    so it fails where a package has to be built. `bare`: without any settings.
    """
    uv, own = find(), dict(os.environ) | dict(variables or {})
    environment = {name: value for name, value in own.items() if KEPT.fullmatch(name)} | QUIET
    environment |= {each.lower(): own.get(each.lower()) or own[each] for each in PROXIES if own.get(each)}
    environment |= {each.lower(): own[each.lower()] for each in PROXIES if own.get(each.lower())}
    words = list(arguments)
    if inert:
        words += ["--no-build-isolation", "--python", inert_python.path(uv, environment)]
    with temporary("uv") as name:
        settings = Path(name, "uv.toml")
        if logins := _logins_by_host(own):
            environment["NETRC"] = str(Path(name, "netrc"))
            private.write(Path(name, "netrc"), logins.encode())
        private.write(settings, b"" if bare else uv_config.text(declared, own).encode())
        done = subprocess.run(
            [uv, *words, "--config-file", str(settings)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    return Done(done.returncode, done.stdout, done.stderr)


def _logins_by_host(environment: Mapping[str, str]) -> str:
    """Return the user's netrc without its entry `default`, which uv would send to any host; empty if it has none."""
    file = environment.get("NETRC") or Path(environment.get("HOME", "/"), ".netrc")
    try:
        text = Path(file).read_text()
    except (OSError, UnicodeDecodeError):
        return ""
    found = DEFAULT_LOGIN.search(text)
    return f"{text[: found.start()]}\n" if found else ""


def temporary(what: str) -> tempfile.TemporaryDirectory[str]:
    """Return a folder that exists while it is open. uv also reads files above it, so those must not be other users'."""
    base = paths.data_home() / "uv"
    paths.make_private(base)
    return tempfile.TemporaryDirectory(prefix=f"{what}-", dir=base)


def find() -> str:
    """Return the path of uv: the one installed with yurt, else the one on PATH. UserError if there is none."""

    try:
        import uv

        return uv.find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise UserError(
            "uv is not installed on this machine, so packages cannot be resolved",
            code="program-missing",
            hint="run `pip install uv`",
        )
    return found
