"""Uploads programs that a site lacks for building environments."""

from __future__ import annotations

import gzip
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from yurt.config import paths
from yurt.envs.of_runs import conda
from yurt.envs.of_runs.prepare import Prepared
from yurt.errors import RefusedError, YurtError
from yurt.model import layout
from yurt.model.digest import checksum
from yurt.model.env import EnvBuild
from yurt.model.progress import Event, Watch

if TYPE_CHECKING:
    from yurt.backends.base import Envs


def with_uv(context: str, prepared: Prepared, envs: Envs, watch: Watch) -> EnvBuild:
    """Return the build, after uv is on the site if the build needs it from yurt. Without it, pip is used if possible.

    RefusedError: the site can do nothing without uv, and it cannot be downloaded or uploaded.
    """
    build = prepared.build
    if build.uv != layout.tool(layout.chain(build.folder)[0], "uv") or envs.has_tool(build.folder, "uv"):
        return build
    from yurt.envs import uv_binary

    try:
        content = uv_binary.fetch(prepared.target.machine, paths.data_home() / "wheels", watch=watch)
    except YurtError as error:
        if prepared.needs_uv:
            raise RefusedError(
                f"{context} needs uv to build the environment of {prepared.env.title}, and yurt cannot provide it:"
                f" {error.message}",
                code="impossible",
                hint=f"install uv on {context}, or use `--env none`",
            ) from None
        watch(Event(f"using pip on {context}, because yurt cannot provide uv: {error.message}"))
        return msgspec.structs.replace(build, uv="")
    title = f"uploading uv to {context}, once"
    envs.send_tool(build.folder, "uv", content, partial(_moved, watch, title, len(content)))
    return build


def with_conda(context: str, prepared: Prepared, envs: Envs, watch: Watch) -> EnvBuild:
    """Return the build, after the installer of conda is on the site if the build needs it from this machine.

    UserError: the installer cannot be read. UnreachableError: it cannot be downloaded, or not be uploaded.
    """
    build = prepared.build
    if not build.installer or ("://" in build.installer and not prepared.offline):
        return build
    if envs.has_tool(build.folder, "conda"):
        return msgspec.structs.replace(build, installer="")
    watch(Event(f"reading the installer of conda from {build.installer}"))
    content = conda.read(build.installer)
    name = f"installer-{checksum(content).hex()}.sh"
    if not envs.has_tool(build.folder, name):
        packed = gzip.compress(content, 1, mtime=0)
        title = f"uploading the installer of conda to {context}, once"
        envs.send_tool(build.folder, name, packed, partial(_moved, watch, title, len(packed)))
    return msgspec.structs.replace(build, installer=layout.tool(layout.chain(build.folder)[0], name))


def _moved(watch: Watch, title: str, total: int, count: int) -> None:
    watch(Event(title, count, total, bytes=True))
