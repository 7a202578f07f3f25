"""Large deletions: a sync copies the deletion of many files only if the user has confirmed it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from yurt.errors import RefusedError
from yurt.homes import ignores
from yurt.homes.outcomes import Deletion, shown
from yurt.homes.output import Kept
from yurt.homes.places import Pair, Place
from yurt.model.site_words import whole

MOST = 100
"""Files that a sync deletes on a place without a question."""

LARGE_HOME, SHARE = 200, 10
"""In a home of at least 200 files, at most a tenth of them."""

SCRIPT = Path(__file__).with_name("count.sh")
TIMEOUT = 600.0
"""Seconds to count the files of a large folder on a slow disk."""

Agree = Callable[[Deletion], bool]
"""Whether the user has confirmed a large deletion."""


def refused(_deletion: Deletion) -> bool:
    """Confirm nothing: what a sync does that cannot ask."""
    return False


class Guard(msgspec.Struct, frozen=True):
    """What a sync needs to decide about deletions: the text of the profile, and what the user has confirmed."""

    profile: str
    agree: Agree


class Decision(msgspec.Struct, frozen=True):
    """Which deletions a sync copies, and which it does not."""

    copy: dict[str, int]
    """Their numbers of files."""
    keep: list[str]
    deletions: list[Deletion]
    """Those in `keep`, in words."""


def decide(pair: Pair, kept: Sequence[Kept], guard: Guard) -> Decision:
    """Decide about the paths that are gone on one side of a pair. One operation for each place that would lose files.

    Of a large deletion, only the largest folders are kept: what remains is no large deletion. RefusedError if a place
    cannot count its files.
    """
    made = Decision({}, [], [])
    for place in pair.places:
        paths = [each.path for each in kept if each.by_server == (place is pair.server)]
        if not paths:
            continue
        other = next(each for each in pair.places if each is not place)
        files, home = _count(place, paths, guard.profile)
        held = groups(files, home)
        large = {path for group in held for path in group}
        made.copy.update({path: files[path] for path in paths if path not in large})
        for group in held:
            size = sum(files[path] for path in group)
            deletion = Deletion(path=os.path.commonpath(group), place=other.name, other=place.name, files=size)
            if guard.agree(deletion):
                made.copy.update({path: files[path] for path in group})
            else:
                made.keep.extend(group)
                made.deletions.append(deletion)
    return made


def text(deletion: Deletion) -> str:
    """Return a deletion in words."""
    files = f"{deletion.files} file{'' if deletion.files == 1 else 's'}"
    where = f"'{shown(deletion.path)}'" if deletion.path else "the home"
    return f"large deletion on {deletion.place} not copied to {deletion.other}: {files} in {where}"


def hint(some: Sequence[Deletion]) -> str:
    """Return how to confirm some deletions, or to undo them; empty if there are none."""
    if not some:
        return ""
    first = some[0]
    path = shlex.quote(shown(first.path))
    undo = f"`yurt home conflicts --keep {first.other} {path}`" if first.path else "`yurt home conflicts`"
    return f"`yurt home sync --yes` deletes them on {first.other}, too; {undo} brings them back"


def is_large(files: int, home: int) -> bool:
    """Whether to ask before so many files of a home are deleted."""
    return files > MOST or (home >= LARGE_HOME and files * SHARE > home)


def groups(files: Mapping[str, int], home: int) -> list[list[str]]:
    """Return the paths to keep, by top-level folder, the largest first, so that the others are no large deletion. Pure.

    `files` are the numbers of files of each path.
    """
    folders: dict[str, list[str]] = {}
    for path, number in files.items():
        alone = number > 1 or "/" in path  # files that are directly in the home are one group
        folders.setdefault(path.partition("/")[0] if alone else "", []).append(path)
    found: list[list[str]] = []
    left = sum(files.values())
    for group in sorted(folders.values(), key=lambda each: -sum(files[path] for path in each)):
        if not is_large(left, home):
            break
        found.append(group)
        left -= sum(files[path] for path in group)
    return found


def script(profile: str) -> str:
    """Return the script that counts deleted files; `profile` is the text of the profile."""
    return SCRIPT.read_text().replace("@IGNORED@", ignores.read(profile).expression)


def _count(place: Place, paths: Sequence[str], profile: str) -> tuple[dict[str, int], int]:
    """Return how many files a place has at each path, and in all."""
    lines = "".join(path.replace("\n", "\1") + "\n" for path in paths)
    answer = place.run(script(profile), place.folder.removeprefix("~/"), stdin=os.fsencode(lines), timeout=TIMEOUT)
    numbers = answer.text.split()
    if answer.code or len(numbers) != len(paths) + 1:
        raise RefusedError(
            f"cannot count the deleted files on {place.name}: {answer.errors or 'no error message'}",
            code="site-refused",
        )
    with place.host.reading():
        *each, home = (whole(number) for number in numbers)
    return dict(zip(paths, each, strict=True)), home
