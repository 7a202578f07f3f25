"""The installer of conda that a user names for sites without conda."""

from __future__ import annotations

from pathlib import Path

from yurt.config import paths
from yurt.contexts.folders import expand_locally
from yurt.envs.declared import Declared
from yurt.errors import RefusedError, UserError
from yurt.model.context import Context
from yurt.model.env import EnvTools


def installer(declared: Declared, tools: EnvTools, context: Context) -> str:
    """Return the address or the file of the installer that a site needs; empty if it has conda.

    RefusedError: the context names none. UserError: it names a file that does not exist.
    """
    if tools.conda:
        return ""
    named = context.conda_installer or ""
    if not named:
        raise RefusedError(
            f"{context.name} has no conda for {declared.title}",
            code="impossible",
            hint="load it with `modules_to_load` of the context, or name an installer such as that of Miniforge with"
            f" `conda_installer` in `yurt context edit {context.name}`",
        )
    if "://" in named:
        return named
    file = expand_locally(named)
    if not Path(file).is_file():
        raise UserError(
            f"conda_installer of context '{context.name}' is not a file: {file}",
            code="config-invalid",
            hint=f"download the installer, or correct its path with `yurt context edit {context.name}`",
        )
    return file


def read(source: str) -> bytes:
    """Return an installer from an address or a file. UnreachableError: it cannot be downloaded."""
    from yurt.envs import indexes
    from yurt.envs.download import Downloader

    if "://" in source:
        return Downloader(paths.data_home() / "wheels", indexes.of_pip(), {}).one(source)
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror}", code="not-found") from None
