"""data put: copy files and folders to a context, or from one context to another."""

from __future__ import annotations

import contextlib
import posixpath
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.cli import call, render
from yurt.cli.ask import confirm
from yurt.cli.declare import argument, option, verb
from yurt.cli.progress import watching
from yurt.contexts import outside_files
from yurt.errors import RefusedError, UserError
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.model.place import parse
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.storage import here, transfer
from yurt.storage import pack as archives
from yurt.storage.spots import Spot, must_be_spot, spot
from yurt.transport import rsync_direct, rsync_process, rsync_through, tar_copy
from yurt.transport.side import Side
from yurt.transport.ssh import SshHost

if TYPE_CHECKING:
    from yurt.model.result import Result


def copy(source: Spot, target: Spot, manner: Manner, progress: Progress) -> tuple[Moved, str]:
    """Copy a file or folder; return what was done, and its path on the target's context.

    rsync on the source's login node copies it directly if ssh from there reaches the other without a prompt; otherwise
    the bytes pass through this machine. UnreachableError: a retry continues.
    """
    place = target.below(posixpath.basename(source.path)) if target.inside else target
    if source.path == "/":
        raise UserError(f"'{source}' is the root of the file system", code="usage", hint="name a folder below it")
    transfer.check_target(place)
    if source.here:
        return transfer.put([Path(source.path)], place, manner, progress)
    if place.here:
        here.check_own(Path(place.path))
        return transfer.get(source, Path(place.path), manner, progress), place.path
    same = source.context.name == place.context.name
    guard = place.guard(delete=manner.delete, sources=[source.path] if same else [])
    side = Side(place.host, place.path, guard)
    if manner.dry and not transfer.has_folder(side):
        return Moved(), place.path
    with contextlib.suppress(rsync_process.Strange):
        address = "" if same else _address(place)
        return _by_rsync(_side(source), side, manner, progress, address=address, same=same), place.path
    tar_copy.without_delete(manner.delete)
    folder = transfer.look(source)[0] == "folder"
    return tar_copy.between(_side(source), side, progress, folder=folder), place.path


def _by_rsync(source: Side, target: Side, manner: Manner, progress: Progress, *, address: str, same: bool) -> Moved:
    if same or address:
        done = rsync_direct.direct(source, target, manner, progress, address=address)
        if done is not None:
            return done
    return rsync_through.through(source, target, manner, progress)


def _address(place: Spot) -> str:
    """Return how other login nodes reach that of a context."""
    if place.context.race_address:
        return place.context.race_address
    host = place.host
    return host.destination.removeprefix("ssh://").partition(":")[0] if isinstance(host, SshHost) else ""


def _side(place: Spot) -> Side:
    return Side(place.host, place.path)


MOST = 5
"""How many special files to name."""


class DataCopied(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of files to, from or between contexts."""

    sources: list[str]
    """What was copied: paths of this machine, or CONTEXT:PATH."""
    target: str
    """Where the copy is: a path of this machine, or CONTEXT:PATH."""
    done: Moved
    """What was sent, and how."""


def put(
    sources: Sequence[str],
    target: str,
    *,
    context: str = "",
    pack: bool = False,
    checksum: bool = False,
    delete: bool = False,
    dry: bool = False,
    watch: Watch = unwatched,
) -> Result[DataCopied]:
    """Copy files and folders of this machine, or places of contexts, to a place. What is there already is not sent.

    `pack`: as one archive. `dry`: only find out what would be done. UnreachableError: what was copied is kept, and a
    retry continues.
    """
    place = must_be_spot(target, context, watch=watch)
    manner = Manner(checksum=checksum, delete=delete, dry=dry)
    places = [spot(each, context, watch=watch) for each in sources]
    known = [each for each in places if each is not None]
    if known and len(known) < len(places):
        raise UserError(
            "the sources are partly on this machine and partly on a context", code="usage", hint="copy them separately"
        )
    if pack and (known or delete or len(sources) > 1):
        raise UserError(
            "--pack makes an archive of one folder of this machine", code="usage", hint="see `yurt data put --help`"
        )
    if known:
        return _between(known, place, manner, watch)
    for each in sources:
        outside_files.check_source(Path(each))
    progress = shown("uploading", watch)
    if pack:
        moved, path = archives.put(Path(sources[0]), place, progress, checksum=checksum)
    else:
        moved, path = transfer.put([Path(each) for each in sources], place, manner, progress)
    return copied([str(each) for each in sources], f"{place.context.name}:{path}", moved)


def _between(sources: Sequence[Spot], place: Spot, manner: Manner, watch: Watch) -> Result[DataCopied]:

    total, path = Moved(), place.path
    if len(sources) > 1:
        place = msgspec.structs.replace(place, inside=True)
    for each in sources:
        moved, path = copy(each, place, manner, shown(f"copying {each}", watch))
        total = Moved(
            files=total.files + moved.files,
            size=total.size + moved.size,
            unchanged=total.unchanged + moved.unchanged,
            deleted=total.deleted + moved.deleted,
            skipped=[*total.skipped, *moved.skipped],
            vanished=total.vanished or moved.vanished,
            way=moved.way,
        )
    where = path if len(sources) == 1 else place.path
    return copied([str(each) for each in sources], f"{place.context.name}:{where}", total)


def shown(text: str, watch: Watch) -> Progress:
    """Return a callback that shows the progress of a transfer."""
    watch(Event(text))
    return lambda done, total: watch(Event(text, done, total, bytes=True))


def copied(sources: Sequence[str], target: str, moved: Moved) -> Result[DataCopied]:
    """Return the result of a copy, with its warnings."""
    warnings = []
    if moved.way.startswith("tar"):
        warnings.append("one side has no usable rsync: the files were sent as a tar archive, which takes longer")
    if moved.skipped:
        names = ", ".join(moved.skipped[:MOST]) + (" …" if len(moved.skipped) > MOST else "")
        warnings.append(f"special files were not copied: {names}")
    if moved.no_git:
        warnings.append(
            "the .git of the source was left out, because the target is in a git repository, and git runs commands "
            "that it finds there; to copy it, name it: PLACE/.git TARGET/.git"
        )
    if moved.vanished:
        warnings.append("some files changed or vanished during the transfer; run the command again to copy them")
    data = DataCopied(sources=list(sources), target=target, done=moved)
    return Result(kind="data-copied", data=data, warnings=warnings)


EXAMPLES = [
    "yurt data put cifar project:datasets/cifar",
    "yurt data put a.csv b.csv project:tables/",
    "yurt data put --pack images project:images.tar",
    "yurt data put alpha:project:cifar beta:project:cifar",
]

CHECKSUM = option("--checksum", is_flag=True, help="Compare files by content, not by size and time.")
DELETE = option("--delete", is_flag=True, help="Delete files in the target that the source lacks; asks first.")
YES = option("--yes", "-y", is_flag=True, help="With --delete: do not ask for confirmation.")


@verb(examples=EXAMPLES)
@argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@argument("target", metavar="PLACE")
@option("--pack", is_flag=True, help="Upload a folder as one tar archive and keep it so.")
@CHECKSUM
@DELETE
@YES
def put_command(sources: tuple[str, ...], target: str, *, pack: bool, checksum: bool, delete: bool, yes: bool) -> int:
    """Copy files to a context, or between contexts.

    One SOURCE gets the name of PLACE; the content of a folder is merged into a folder that exists. If PLACE ends with
    a slash, or there are several, they are copied into that folder under their own names. Links are copied as links;
    modes and times are kept.

    SOURCE can be on another context. Then rsync on its login node copies the files directly, if ssh from there reaches
    the other one without a prompt. Otherwise they pass through this machine, but not through its disk.
    """

    call.enable_gc()

    def copy(*, dry: bool) -> Result[DataCopied]:
        with continues(), watching() as watch:
            return put(
                sources,
                target,
                context=call.current().context,
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

    number = found.done.deleted
    if not number:
        return
    what = "1 file or folder" if number == 1 else f"{number:,} files and folders"
    asks = not call.current().json and sys.stdin.isatty()
    if asks and confirm(render.plain(f"permanently delete {what} at {found.target}?")):
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
