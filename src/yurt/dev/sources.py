"""What a new workspace is made from: the value of `yurt dev up --from`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

import msgspec

from yurt.dev.desks import DEFAULT
from yurt.errors import UserError
from yurt.model.facts import Facts

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.lz4", ".tar.zst")
URL = re.compile(r"(?:https?|ssh|git|file)://|[^/:]+@[^/:]+:")
"""The beginning of a git URL."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """What to make a workspace from."""

    kind: str = ""
    """git, folder, project or archive, as the holder knows them; `desk` for a workspace of another context."""
    value: str = ""
    """An address, or a path on the site; for `desk` the context."""
    upload: str = ""
    """An archive on this machine that is uploaded first."""
    desk: str = DEFAULT
    """For `desk`: the name of the dev node."""
    version: int = 0
    """For `desk`: its version; 0 for the newest."""


def parse(text: str, facts: Facts | None, contexts: Collection[str], *, here: bool) -> Source:
    """Return what a text means for a site with these facts. `here`: the site is this machine. UserError: nothing."""
    if not text:
        return Source()
    if text in ("project", "."):
        return Source(kind="project")
    if URL.match(text):
        return Source(kind="git", value=text)
    archive = text.endswith(ARCHIVES)
    local = os.path.abspath(os.path.expanduser(text))
    if archive and os.path.isfile(local):
        return Source(kind="archive", value=local) if here else Source(kind="archive", upload=local)
    if here and os.path.isdir(local):
        return Source(kind="folder", value=local)
    if text.startswith("/") and not here:
        return Source(kind="archive" if archive else "folder", value=text)
    first, _, rest = text.partition(":")
    tiers = {each.name: each.path for each in facts.tiers} if facts is not None else {}
    if first in tiers and rest:
        return Source(kind="archive" if archive else "folder", value=f"{tiers[first].rstrip('/')}/{rest.lstrip('/')}")
    if first in contexts:
        name, _, version = rest.partition("@")
        if not version or re.fullmatch(r"v?[0-9]+", version):
            return Source(
                kind="desk", value=first, desk=name or DEFAULT, version=int(version.removeprefix("v")) if version else 0
            )
    raise UserError(
        f"--from '{text}' is not a git URL, `project`, a folder or an archive that exists, or a context",
        code="usage",
        hint="for example: `--from https://host/repository.git`, `--from project`, `--from scratch:data`, or"
        " `--from /shared/work.tar.zst`",
    )


def upload_name(source: Source) -> str:
    """Return the name of an uploaded archive on the site."""
    return Path(source.upload).name
