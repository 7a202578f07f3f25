"""data get: copy a file or folder of a context to this machine."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from yurt.cli import call, render
from yurt.cli.declare import argument, option, verb
from yurt.contexts import outside_files
from yurt.errors import UserError
from yurt.model.data import Manner
from yurt.model.place import parse
from yurt.model.progress import Watch, unwatched
from yurt.model.result import Result
from yurt.storage.data_put import (
    CHECKSUM,
    DELETE,
    YES,
    DataCopied,
    confirm_deletion,
    continues,
    copied,
    print_copied,
    shown,
)
from yurt.storage.spots import must_be_spot

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.storage.data_put import DataCopied


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


EXAMPLES = [
    "yurt data get project:datasets/cifar",
    "yurt data get scratch:model.pt models/best.pt",
    "yurt data get --unpack project:images.tar",
]


@verb(examples=EXAMPLES)
@argument("place", metavar="PLACE")
@argument("target", metavar="[TARGET]", required=False, default="")
@option("--unpack", is_flag=True, help="Extract a tar archive into a new folder.")
@CHECKSUM
@DELETE
@YES
def get_command(place: str, target: str, *, unpack: bool, checksum: bool, delete: bool, yes: bool) -> int:
    """Copy a file or folder of a context to this machine.

    It gets the name TARGET, or its own name in the folder TARGET if that ends with a slash; by default its own name in
    the current folder. The content of a folder is merged into a folder that exists.
    """
    from yurt.cli.progress import watching

    call.enable_gc()

    def copy(*, dry: bool) -> Result[DataCopied]:
        with continues(), watching() as watch:
            return get(
                place,
                target,
                context=call.current().context,
                unpack=unpack,
                checksum=checksum,
                delete=delete,
                dry=dry,
                watch=watch,
            )

    if delete and not yes and not unpack:
        confirm_deletion(copy(dry=True).data)
    found = copy(dry=False)
    return render.result(found, lambda: print_copied(found.data, "downloaded"))
