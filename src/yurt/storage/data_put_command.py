"""`yurt data put SOURCE… PLACE`: copy files to a context, or between contexts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from yurt.cli import app, render
from yurt.cli.app import verb

if TYPE_CHECKING:
    from yurt.model.result import Result
    from yurt.storage.data_put import DataCopied

EXAMPLES = [
    "yurt data put cifar project:datasets/cifar",
    "yurt data put a.csv b.csv project:tables/",
    "yurt data put --pack images project:images.tar",
    "yurt data put alpha:project:cifar beta:project:cifar",
]

CHECKSUM = click.option("--checksum", is_flag=True, help="Compare files by content, not by size and time.")
DELETE = click.option("--delete", is_flag=True, help="Delete files in the target that the source lacks; asks first.")
YES = click.option("--yes", "-y", is_flag=True, help="With --delete: do not ask for confirmation.")


@verb(examples=EXAMPLES)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("target", metavar="PLACE")
@click.option("--pack", is_flag=True, help="Upload a folder as one tar archive and keep it so.")
@CHECKSUM
@DELETE
@YES
def put(sources: tuple[str, ...], target: str, *, pack: bool, checksum: bool, delete: bool, yes: bool) -> int:
    """Copy files to a context, or between contexts.

    One SOURCE gets the name of PLACE; the content of a folder is merged into a folder that exists. If PLACE ends with
    a slash, or there are several, they are copied into that folder under their own names. Links are copied as links;
    modes and times are kept.

    SOURCE can be on another context. Then rsync on its login node copies the files directly, if ssh from there reaches
    the other one without a prompt. Otherwise they pass through this machine, but not through its disk.
    """
    from yurt.cli.progress import watching
    from yurt.model.place import parse
    from yurt.storage import data_put as verbs

    app.enable_gc()

    def copy(*, dry: bool) -> Result[DataCopied]:
        with continues(), watching() as watch:
            return verbs.put(
                sources,
                target,
                context=app.current().context,
                pack=pack,
                checksum=checksum,
                delete=delete,
                dry=dry,
                watch=watch,
            )

    if delete and not yes and not pack:
        confirm_deletion(copy(dry=True).data)
    found = copy(dry=False)
    between = parse(sources[0]) is not None
    return render.result(found, lambda: print_copied(found.data, "copied" if between else "uploaded"))


def confirm_deletion(found: DataCopied) -> None:
    """Ask whether files may be deleted, if there are any. RefusedError: they may not, or nobody can be asked."""
    from yurt.errors import RefusedError

    number = found.done.deleted
    if not number:
        return
    what = "1 file or folder" if number == 1 else f"{number:,} files and folders"
    asks = not app.current().json and sys.stdin.isatty()
    if asks and click.confirm(render.plain(f"permanently delete {what} at {found.target}?"), err=True):
        return
    raise RefusedError(
        f"nothing was copied: {what} at {found.target} would be deleted, and that was not confirmed",
        code="not-confirmed",
        hint="confirm it with `--yes`, or copy without `--delete`",
    )


@contextmanager
def continues() -> Iterator[None]:
    """Say after Ctrl-C that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        print("yurt: interrupted; what was copied is kept, run the command again to continue", file=sys.stderr)
        raise


def print_copied(found: DataCopied, what: str) -> None:
    """Print one line: what was sent, what was there already, and where it is."""
    done = found.done
    parts = []
    if done.files or not done.unchanged:
        parts.append(f"{what} {_files(done.files)}, {render.amount(done.size)}")
    if done.unchanged:
        unchanged = f"{done.unchanged:,}" if done.files else _files(done.unchanged)
        parts.append(f"{unchanged} unchanged")
    if done.deleted:
        parts.append(f"{done.deleted:,} deleted")
    if "," in done.way or "through" in done.way:
        parts.append("directly" if "," in done.way else "through this machine")
    print(render.plain("; ".join([*parts, found.target])))


def _files(number: int) -> str:
    return f"{number:,} file" + ("" if number == 1 else "s")
