"""data get: copy a file or folder of a context to this machine."""

from __future__ import annotations

import posixpath
from pathlib import Path

from yurt.contexts import outside_files
from yurt.errors import UserError
from yurt.model.data import Manner
from yurt.model.place import parse
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.storage.data_put import DataCopied, copied, shown
from yurt.storage.spots import must_be_spot


def get(
    place: str,
    target: str = "",
    *,
    context: str = "",
    unpack: bool = False,
    checksum: bool = False,
    delete: bool = False,
    dry: bool = False,
    watch: Watch = unwatched,
) -> Result[DataCopied]:
    """Copy a file or folder to the path `target`, or into it if it ends with a slash; by default here.

    So the same command continues a copy that was interrupted. `unpack`: extract an archive into a folder.
    `dry`: only find out what would be done.
    UnreachableError: what was copied is kept.
    """
    from yurt.storage import pack, transfer

    if parse(target) is not None:
        raise UserError(
            f"'{target}' is a place on a context, not a path of this machine",
            code="usage",
            hint=f"use `yurt data put {place} {target}`, or `./{target}` for a file of this name",
        )
    source = must_be_spot(place, context, watch=watch)
    if unpack and (checksum or delete):
        raise UserError("--unpack cannot be combined with --checksum or --delete", code="usage")
    name = posixpath.basename(source.path)
    if unpack:
        name = name.removesuffix(pack.ending(name))
    if not name and not target:
        raise UserError(f"'{place}' has no name", code="usage", hint="name the folder of this machine to copy it to")
    folder = Path(target or ".").expanduser()
    inside = not target or target.endswith("/") or folder.name in ("", "..")
    path = folder / name if inside else folder
    outside_files.check_target(path)
    progress = shown("downloading", watch)
    if unpack:
        moved = pack.get(source, path, progress)
    else:
        moved = transfer.get(source, path, Manner(checksum=checksum, delete=delete, dry=dry), progress)
    return copied([str(source)], str(path), moved)
