"""What a copy on this machine must not do: empty the home, copy a folder into itself, or bring the modes of a site."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from yurt.config import paths
from yurt.errors import RefusedError
from yurt.transport import protected


def check_apart(sources: Sequence[Path], targets: Sequence[Path], *, delete: bool) -> None:
    """UserError if a target is in a source; with `delete`, also if it contains one."""
    for source in sources:
        for target in targets:
            first, second = source.resolve(), target.resolve()
            if second.is_relative_to(first) or (delete and first.is_relative_to(second)):
                raise protected.into_itself(str(source), str(target))


def check_own(target: Path) -> None:
    """RefusedError for a path in yurt's own folders."""
    own = _within(target.resolve())
    if own is not None:
        raise protected.in_own(str(target), str(own))


def check_delete(target: Path) -> None:
    """RefusedError for a folder where files must not be deleted."""
    real = target.resolve()
    own = _within(real) or next((each for each in _own() if each.is_relative_to(real)), None)
    if own is not None:
        raise protected.in_own(str(target), str(own))
    for kept, what in ((Path.cwd(), "the current folder"), (Path.home(), "your home")):
        if kept.resolve().is_relative_to(real):
            raise RefusedError(
                f"nothing was copied: --delete at '{target}' would delete files of {what}",
                code="cannot-write",
                hint="name a folder below it, or copy without `--delete`",
            )


def in_repository(target: Path) -> bool:
    """Whether a path is in a git repository, or is one; not if it is a .git, which somebody has named then."""
    whole = target.resolve()
    return ".git" not in whole.parts and any(os.path.lexists(each / ".git") for each in (whole, *whole.parents))


def reset_modes(folder: Path) -> None:
    """Give a new folder and its content the modes that the user's umask gives to new files. Programs stay executable.

    rsync does the same by itself, see `rsync_process.OWN_MODES`.
    """
    probe, before = folder / f".yurt-{os.urandom(4).hex()}", folder.stat()
    folder.chmod(0o700)  # the site's may be read-only
    probe.mkdir()  # yurt cannot know the umask without changing it
    made = stat.S_IMODE(probe.stat().st_mode)
    probe.rmdir()
    for place, folders, files in os.walk(folder):
        for each in (Path(place, name) for name in [*folders, *files]):
            found = each.lstat().st_mode
            if stat.S_ISDIR(found):
                each.chmod(made)
            elif not stat.S_ISLNK(found):
                each.chmod(made & (0o777 if found & 0o111 else 0o666))
    folder.chmod(made)
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))


def _own() -> list[Path]:
    return [paths.data_home().resolve(), paths.config_home().resolve()]


def _within(real: Path) -> Path | None:
    return next((each for each in _own() if real.is_relative_to(each)), None)
