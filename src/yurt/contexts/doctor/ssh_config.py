"""An alias for a cluster in ~/.ssh/config: the block, whether it works, and how the file is written."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path

from yurt.config.paths import as_typed
from yurt.contexts.doctor.finding import Finding, Fix
from yurt.model.context import Context
from yurt.transport.master import Master


def file() -> Path:
    return Path.home() / ".ssh" / "config"


def alias(context: Context, master: Master) -> Finding | None:
    """Return the finding for a context without an alias, with the fix that adds one; None if it needs none.

    Contexts with ssh options of their own get none: the alias would not include the options.
    """
    user, _, host = (context.slurm_url or "").rpartition("@")
    if "." not in host or not user or master.options or master.program != ["ssh"] or ":" in host:
        return None
    path = file()
    try:
        before = text_of(path)
    except (OSError, UnicodeDecodeError):
        return None
    typed = as_typed(path)
    after = with_alias(before, context.name, host, user)
    if _settings(before, context.name).get("hostname", context.name) != context.name:
        return None  # the name is an alias already
    if not works(after, context.name, host, user):
        return None
    fix = Fix(
        title=f"add the ssh alias '{context.name}' to {typed}",
        file=str(path),
        before=before,
        after=after,
        context=context.name,
    )
    return Finding(
        check="ssh alias",
        result="ok",
        text=f"no ssh alias, which would make `ssh {context.name}` work; `yurt doctor --fix {context.name}` adds it",
        fix=fix,
    )


def text_of(path: Path) -> str:
    """Return the configuration with its own line endings; empty if there is none."""
    try:
        with path.open(newline="") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def with_alias(text: str, name: str, host: str, user: str) -> str:
    """Return the configuration with a block at its end: a block before other lines would take them over."""
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else end if text.endswith("\n") else end * 2
    return f"{text}{gap}Host {name}{end}  HostName {host}{end}  User {user}{end}"


def works(text: str, name: str, host: str, user: str) -> bool:
    """Whether ssh reads this configuration as intended: an earlier block may set another user or host."""
    found = _settings(text, name)
    return found.get("hostname") == host and found.get("user") == user


def _settings(text: str, name: str) -> dict[str, str]:
    """Return ssh's settings for a host with this configuration; {} if ssh rejects it."""
    with tempfile.NamedTemporaryFile("w", prefix="yurt-", suffix=".conf", newline="") as aside:
        aside.write(text)
        aside.flush()
        argv = ["ssh", "-F", aside.name, "-G", name]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines()) if done.returncode == 0 else {}


def write(path: Path, before: str, after: str) -> bool:
    """Replace the file, or the file that it is a link to; keep its mode. False if it is no longer `before`."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    if text_of(target) != before:
        return False
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", newline="") as stream:
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True
