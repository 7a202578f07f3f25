"""`yurt data get PLACE [TARGET]`: copy a file or folder of a context to this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb
from yurt.storage.data_put_command import CHECKSUM, DELETE, YES, confirm_deletion, continues, print_copied

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.storage.data_put import DataCopied

EXAMPLES = [
    "yurt data get project:datasets/cifar",
    "yurt data get scratch:model.pt models/best.pt",
    "yurt data get --unpack project:images.tar",
]


@verb(examples=EXAMPLES)
@click.argument("place", metavar="PLACE")
@click.argument("target", metavar="[TARGET]", required=False, default="")
@click.option("--unpack", is_flag=True, help="Extract a tar archive into a new folder.")
@CHECKSUM
@DELETE
@YES
def get(place: str, target: str, *, unpack: bool, checksum: bool, delete: bool, yes: bool) -> int:
    """Copy a file or folder of a context to this machine.

    It gets the name TARGET, or its own name in the folder TARGET if that ends with a slash; by default its own name in
    the current folder. The content of a folder is merged into a folder that exists.
    """
    from yurt.cli.progress import watching
    from yurt.storage import data_get as verbs

    app.enable_gc()

    def copy(*, dry: bool) -> Result[DataCopied]:
        with continues(), watching() as watch:
            return verbs.get(
                place,
                target,
                context=app.current().context,
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
