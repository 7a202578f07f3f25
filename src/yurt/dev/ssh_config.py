"""yurt's own ssh configuration, with a host for each dev node, and the line in ~/.ssh/config that includes it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from yurt.config import paths
from yurt.config.lock import locked
from yurt.contexts.doctor import ssh_config as users
from yurt.dev import keys, shortcut
from yurt.dev.desks import DEFAULT, ssh_name
from yurt.errors import RefusedError
from yurt.model.site_words import UserName

HEAD = "# Written by yurt. `yurt dev up` adds dev nodes; changes by hand are lost.\n"


def file() -> Path:
    return paths.config_home() / "ssh_config"


def known_hosts(name: str) -> Path:
    """Return the file with the host key of a dev node."""
    return keys.folder() / f"known_hosts-{name}"


def add(name: str, user: UserName) -> None:
    """Make ssh reach the dev node `name`, where the user is `user`. Other dev nodes stay.

    RefusedError: ssh cannot read the new file; the old one stays.
    """
    keys.public_key()
    with locked(file()):
        names = {**_names(), name: user}
        text = HEAD + "".join(block(each, names[each]) for each in sorted(names))
        if _read(file()) != text.encode():
            _try(text, names)
            plain = {each: str(names[each]) for each in names}
            paths.write_private(keys.folder() / "names.json", msgspec.json.encode(plain))
            paths.write_private(file(), text.encode())


def _names() -> dict[str, UserName]:
    try:
        recorded = msgspec.json.decode(_read(keys.folder() / "names.json"), type=dict[str, str])
    except msgspec.MsgspecError:
        return {}
    users_of = {name: UserName.read(user) for name, user in recorded.items()}
    return {name: user for name, user in users_of.items() if user is not None}


def _try(text: str, names: Mapping[str, str]) -> None:
    """Try a new file with each of its hosts. An invalid line breaks every ssh of the user, who includes the file.

    RefusedError: ssh does not read the file as it is meant.
    """
    with tempfile.NamedTemporaryFile("w", prefix=".ssh_config-", dir=keys.folder()) as trial:
        trial.write(text)
        trial.flush()
        for name, user in names.items():
            argv = ["ssh", "-G", "-F", trial.name, "--", ssh_name(name)]
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            read = done.stdout.decode(errors="replace").splitlines()
            if done.returncode or not {f"user {user}", f"hostkeyalias {ssh_name(name)}"} <= {*read}:
                lines = done.stderr.decode(errors="replace").replace(trial.name, str(file())).strip().splitlines()
                why = lines[0] if lines else f"ssh does not use user {user}"
                raise RefusedError(
                    f"the ssh configuration for dev node '{name}' would be invalid and was not written: {why}",
                    code="ssh-failed",
                    hint=f"use `yurt dev ssh{'' if name == DEFAULT else ' ' + name}` instead",
                )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def block(name: str, user: UserName) -> str:
    """Return the lines for a dev node. ssh runs `yurt dev connect`, which finds the present node, or a shortcut."""
    variables = [f"{key}={os.environ[key]}" for key in ("YURT_CONFIG_HOME", "YURT_DATA_HOME") if os.environ.get(key)]
    command = shlex.join([*(["env", *variables] if variables else []), "sh", "-c", shortcut.proxy(name)])
    settings = {
        "HostName": ssh_name(name),
        "User": _quoted(user),
        "ProxyCommand": command.replace("%", "%%"),
        "HostKeyAlias": ssh_name(name),
        "UserKnownHostsFile": _quoted(str(known_hosts(name))),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "UpdateHostKeys": "no",
        "IdentityFile": _quoted(str(keys.private_key())),
        "IdentitiesOnly": "yes",
        "ControlPath": "none",  # a shared connection would stay on the previous node
        "ServerAliveInterval": "30",
        "LogLevel": "ERROR",  # yurt says why a connection failed, and ssh would add that it was closed
    }
    return f"\nHost {ssh_name(name)}\n" + "".join(f"  {key} {value}\n" for key, value in settings.items())


def _quoted(value: str) -> str:
    return '"' + value.replace("%", "%%") + '"'


def line() -> str:
    """Return the line for ~/.ssh/config. It must be the first one: later it could belong to a `Host` block."""
    return f'Include "{file()}"'


class Proposal(msgspec.Struct, frozen=True):
    """A change of ~/.ssh/config."""

    file: str
    before: str
    after: str


def proposal() -> Proposal | None:
    """Return the change that includes yurt's configuration; None if it is included, or if the user declined it."""
    path = users.file()
    try:
        before = users.text_of(path)
    except (OSError, UnicodeDecodeError):
        return None
    if line() in before.splitlines() or (keys.folder() / "declined").exists():
        return None
    end = "\r\n" if "\r\n" in before else "\n"
    return Proposal(str(path), before, f"{line()}{end}{end if before else ''}{before}")


def accept(proposed: Proposal) -> bool:
    """Write the change; False if the file has changed since."""
    return users.write(Path(proposed.file), proposed.before, proposed.after)


def decline() -> None:
    """Do not propose the change again."""
    paths.write_private(keys.folder() / "declined", b"")
