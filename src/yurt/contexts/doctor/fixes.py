"""Applies a fix that the user has agreed to."""

from __future__ import annotations

import difflib
import subprocess
from pathlib import Path

import msgspec

from yurt.config import contexts
from yurt.contexts.doctor import ssh_config
from yurt.contexts.doctor.finding import Fix
from yurt.errors import RefusedError, UserError


def preview(fix: Fix) -> str:
    """Return exactly what a fix does: its command, or the difference that it makes to a file."""
    if fix.command:
        return f"$ {fix.line}"
    before, after = (text.replace("\r\n", "\n").splitlines(keepends=True) for text in (fix.before, fix.after))
    lines = difflib.unified_diff(before, after, fix.file, f"{fix.file} (new)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines).rstrip(
        "\n"
    )


def apply(fix: Fix) -> None:
    """Do what `preview` shows. UserError if another program changed the file; RefusedError if the command failed."""
    if fix.file:
        try:
            done = ssh_config.write(Path(fix.file), fix.before, fix.after)
        except OSError as error:
            raise RefusedError(f"cannot write {fix.file}: {error.strerror}", code="cannot-write") from None
        if not done:
            raise UserError(
                f"another program changed {fix.file}, so yurt left it as it is",
                code="context-changed",
                hint="run `yurt doctor --fix` again",
            )
        return
    if fix.command[0] == "ssh-keygen":
        folder = Path(fix.command[fix.command.index("-f") + 1]).parent
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise RefusedError(f"cannot create {folder}: {error.strerror}", code="cannot-write") from None
    try:
        code = subprocess.call(fix.command)
    except FileNotFoundError:
        raise RefusedError(
            f"program '{fix.command[0]}' not found on this machine", code="program-missing", hint="install OpenSSH"
        ) from None
    if code:
        raise RefusedError(
            f"{fix.command[0]} failed with exit code {code}",
            code="cannot-write",
            hint="run the command that `yurt doctor --fix` shows by hand",
        )


def outcome(fix: Fix) -> str:
    """Return what to say after a fix: for a new key, the public key and the next step."""
    if not fix.command or fix.command[0] != "ssh-keygen":
        return "done"
    public = Path(f"{fix.command[fix.command.index('-f') + 1]}.pub")
    try:
        text = public.read_text(errors="replace").strip()
    except OSError:
        return "done"
    return f"done; your public key:\n{text}\nrun `yurt doctor --fix` again to register it with your clusters"


def use_alias(context: str) -> None:
    """Make the ssh alias with the name of a context its slurm_url."""
    found = contexts.named(context)
    contexts.put(contexts.default_file(), [msgspec.structs.replace(found, slurm_url=context)])
