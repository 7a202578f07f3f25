"""The user's ssh keys and agent: permissions, strength, passphrases; how to create a key and to register it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.config.paths import as_typed
from yurt.contexts.doctor.finding import Finding, Fix, chmod, fault, ok, skipped, warning
from yurt.contexts.person import person
from yurt.transport.master import needs_passphrase

WEAK_RSA = 3072


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A private key, as `ssh-keygen -l` describes it."""

    path: str
    type: str = ""
    bits: int = 0
    fingerprint: str = ""
    encrypted: bool = False


def folder() -> Path:
    return Path.home() / ".ssh"


def check() -> list[Finding]:
    """Check ~/.ssh, each private key in it, and the agent."""
    found = private_keys(folder())
    loaded, agent = _agent()
    if not found and not loaded:
        return [*_folder(), no_key(), agent]
    keys = [_key(path) for path in found]
    return [*_folder(), *(each for key in keys for each in about(key, loaded)), agent]


def no_key() -> Finding:
    """Return the finding for a user without a key, with the fix that creates one."""
    path = folder() / "id_ed25519"
    command = ["ssh-keygen", "-t", "ed25519", "-f", str(path), "-C", f"{person()}@{socket.gethostname()}"]
    typed = f"ssh-keygen -t ed25519 -f {as_typed(path)}"
    return warning(
        "ssh key",
        f"no private key in {as_typed(folder())}, and none in an agent",
        f"create one with `{typed}`, then register {as_typed(path)}.pub with your cluster",
        fix=Fix(title="create an ed25519 key (ssh-keygen asks for a passphrase)", command=command, prompts=True),
    )


def private_keys(where: Path) -> list[Path]:
    """Return the files in a folder that contain a private key."""
    try:
        files = sorted(where.iterdir())
    except OSError:
        return []
    return [each for each in files if each.suffix != ".pub" and _is_private_key(each)]


def _is_private_key(file: Path) -> bool:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return False
        with file.open("rb") as stream:
            return re.match(rb"-----BEGIN ([A-Z]+ )*PRIVATE KEY-----", stream.read(64)) is not None
    except PermissionError:
        return file.name.startswith("id_")
    except OSError:
        return False


def _folder() -> list[Finding]:
    where = folder()
    if not where.exists():
        return [skipped("~/.ssh", "the folder does not exist")]
    found = [permissions(where, others="other users can write to it", mask=0o022, mode="700")]
    if not os.access(where, os.R_OK | os.X_OK):
        found.append(unreadable(where, "ssh finds no key and no configuration", "700"))
    elif (config := where / "config").exists():
        found.append(permissions(config, others="other users can write to it", mask=0o022, mode="600"))
        if not os.access(config, os.R_OK):
            found.append(unreadable(config, "ssh ignores it", "600"))
    wrong = [each for each in found if each is not None]
    return wrong or [ok("~/.ssh", "the folder and its config have safe permissions")]


def unreadable(path: Path, effect: str, mode: str) -> Finding:
    """Return the finding for a path that the user cannot read."""
    typed = as_typed(path)
    fix = chmod(mode, str(path)) if path.stat().st_uid == os.getuid() else None
    return fault("permissions", f"you cannot read {typed}, so {effect}", f"run `chmod {mode} {typed}`", fix=fix)


def permissions(path: Path, *, others: str, mask: int, mode: str) -> Finding | None:
    """Return the finding for a path that another user owns or that has one of the bits in `mask`."""
    about = path.stat()
    typed = as_typed(path)
    if about.st_uid not in (0, os.getuid()):
        return fault(
            "permissions", f"{typed} belongs to another user", f"make it yours: `sudo chown {person()} {typed}`"
        )
    if about.st_mode & mask:
        return fault("permissions", f"{typed}: {others}", f"run `chmod {mode} {typed}`", fix=chmod(mode, str(path)))
    return None


def about(key: Key, loaded: Sequence[str]) -> list[Finding]:
    """Return the findings about one key. `loaded`: the fingerprints of the keys in the agent."""
    path = Path(key.path)
    typed = as_typed(path)
    try:
        wrong = permissions(path, others="other users can read it, so ssh ignores it", mask=0o077, mode="600")
    except OSError as error:
        return [fault("ssh key", f"cannot read {typed}: {error.strerror}", f"check it with `ls -l {typed}`")]
    if not os.access(path, os.R_OK):
        return [unreadable(path, "ssh ignores it", "600")]
    found = [] if wrong is None else [wrong]
    what = f"{key.type} {key.bits}".strip() if key.type == "RSA" else key.type or "a private key"
    if key.type == "DSA" or (key.type == "RSA" and key.bits < WEAK_RSA):
        text = f"{typed} is weak: {key.type} with {key.bits} bits"
        found.append(warning("ssh key", text, "create a new one with `ssh-keygen -t ed25519`, and register it"))
    if key.encrypted and key.fingerprint not in loaded:
        text = f"{typed} has a passphrase and is not in the agent, so only `yurt login` can use it"
        found.append(warning("ssh key", text, f"load it with `ssh-add {typed}`"))
    if not found:
        state = "in the agent" if key.fingerprint in loaded else "no passphrase" if not key.encrypted else "encrypted"
        found.append(ok("ssh key", f"{typed}: {what}, {state}"))
    return found


def _key(path: Path) -> Key:
    described = run(["ssh-keygen", "-l", "-f", str(path)])
    key = read_key(described.stdout) if described is not None else Key(path="")
    encrypted = shutil.which("ssh-keygen") is not None and needs_passphrase(path)
    return msgspec.structs.replace(key, path=str(path), encrypted=encrypted)


def read_key(line: str) -> Key:
    """Return the key that a line of `ssh-keygen -l` or `ssh-add -l` describes."""
    found = re.match(r"(\d+) (\S+) .*\((\w+(?:-\w+)*)\)", line)
    return Key(path="", bits=int(found[1]), fingerprint=found[2], type=found[3]) if found else Key(path="")


def _agent() -> tuple[list[str], Finding]:
    """Return the fingerprints in the agent, and the finding about it."""
    if not os.environ.get("SSH_AUTH_SOCK"):
        return [], skipped("ssh agent", "no agent: SSH_AUTH_SOCK is not set")
    done = run(["ssh-add", "-l"])
    if done is None or done.returncode not in (0, 1):
        text = "the agent that SSH_AUTH_SOCK names does not respond"
        return [], warning("ssh agent", text, 'start one with `eval "$(ssh-agent)"`, or `unset SSH_AUTH_SOCK`')
    keys = [read_key(line) for line in done.stdout.splitlines()] if done.returncode == 0 else []
    number = f"{len(keys)} key{'' if len(keys) == 1 else 's'}"
    return [key.fingerprint for key in keys], ok("ssh agent", f"the agent has {number}")


def run(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a program without input; None if it cannot be started or does not end within 10 seconds."""
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def public_keys(identities: Sequence[Path]) -> list[Path]:
    """Return the public halves of these keys and of those in ~/.ssh that exist."""
    candidates = [Path(f"{each}.pub") for each in (*identities, *private_keys(folder()))]
    return list(dict.fromkeys(each for each in candidates if each.is_file()))


def registration(host: str) -> str:
    """Return where the site of a host wants public keys, by its profile."""
    from yurt.contexts import profiles

    profile = profiles.of(host)
    if profile is not None and profile.keys_url:
        return f"register it at {profile.keys_url}"
    return "register it where your site asks for keys: a web page, an e-mail to its support, or `ssh-copy-id`"
