"""data put: copy files and folders to a context, or from one context to another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from yurt.errors import UserError
from yurt.model.data import Manner, Moved
from yurt.model.files import Progress
from yurt.model.progress import Event, Watch, unwatched
from yurt.model.result import Result
from yurt.storage.spots import Spot, must_be_spot, spot

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
    progress = shown("uploading", watch)
    if pack:
        from yurt.storage import pack as archives

        moved, path = archives.put(Path(sources[0]), place, progress, checksum=checksum)
    else:
        from yurt.storage import transfer

        moved, path = transfer.put([Path(each) for each in sources], place, manner, progress)
    return copied([str(each) for each in sources], f"{place.context.name}:{path}", moved)


def _between(sources: Sequence[Spot], place: Spot, manner: Manner, watch: Watch) -> Result[DataCopied]:
    from yurt.storage import between

    total, path = Moved(), place.path
    if len(sources) > 1:
        place = msgspec.structs.replace(place, inside=True)
    for each in sources:
        moved, path = between.copy(each, place, manner, shown(f"copying {each}", watch))
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
