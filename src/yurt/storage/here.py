"""What a copy on this machine must not do: empty the home or yurt's own folders, or copy a folder into itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from yurt.config import paths
from yurt.errors import RefusedError
from yurt.hosts import protected


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


def _own() -> list[Path]:
    return [paths.data_home().resolve(), paths.config_home().resolve()]


def _within(real: Path) -> Path | None:
    return next((each for each in _own() if real.is_relative_to(each)), None)
