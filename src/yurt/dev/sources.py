"""What a new workspace is made from: the value of `yurt dev up --from`."""

from __future__ import annotations

import hashlib
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
    found = _file(text, here=here) or _on_site(text, facts, contexts)
    if found is not None:
        return found
    raise UserError(
        f"--from '{text}' is not a git URL, `project`, a folder or an archive that exists, or a context",
        code="usage",
        hint="for example: `--from https://host/repository.git`, `--from project`, `--from scratch:data`, or"
        " `--from /shared/work.tar.zst`",
    )


def _file(text: str, *, here: bool) -> Source | None:
    """Return a folder or an archive that a path names, on this machine or on the site."""
    archive, local = text.endswith(ARCHIVES), Path(text).expanduser().absolute()
    if archive and local.is_file():
        return Source(kind="archive", value=str(local)) if here else Source(kind="archive", upload=str(local))
    if here:
        return Source(kind="folder", value=str(local)) if local.is_dir() else None
    return Source(kind="archive" if archive else "folder", value=text) if text.startswith("/") else None


def _on_site(text: str, facts: Facts | None, contexts: Collection[str]) -> Source | None:
    """Return what TIER:PATH or CONTEXT[:NAME[@vN]] names."""
    first, _, rest = text.partition(":")
    tiers = {each.name: each.path for each in facts.tiers} if facts is not None else {}
    if first in tiers and rest:
        kind = "archive" if text.endswith(ARCHIVES) else "folder"
        return Source(kind=kind, value=f"{tiers[first].rstrip('/')}/{rest.lstrip('/')}")
    name, _, version = rest.partition("@")
    if first not in contexts or (version and not re.fullmatch(r"v?[0-9]+", version)):
        return None
    number = int(version.removeprefix("v")) if version else 0
    return Source(kind="desk", value=first, desk=name or DEFAULT, version=number)


def upload_folder(source: Source, backups: str) -> str:
    """Return the folder on the site for an archive of this machine, beside a backups folder.

    It changes with the archive, so that an earlier upload of a file with the same name is not used instead.
    """
    above, _, name = backups.rpartition("/")
    archive = Path(source.upload)
    state = archive.stat()
    digest = hashlib.sha256(f"{archive}\0{state.st_size}\0{state.st_mtime_ns}".encode()).hexdigest()
    return f"{above}/.from-{name}-{digest[:12]}"


def located(source: Source, backups: str) -> str:
    """Return the address or the path from which the node reads a source; empty if it reads none."""
    if source.upload:
        return f"{upload_folder(source, backups)}/{Path(source.upload).name}"
    return "" if source.kind == "desk" else source.value
