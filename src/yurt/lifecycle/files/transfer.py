"""What runs of one site wrote, on its way here: of one run, or of many in one go."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from yurt.errors import NotFoundError, RefusedError, UserError, YurtError, here_is_full
from yurt.model import layout
from yurt.model.files import NOTHING, UNMEASURED, Brought, Contents, Pick, Progress, Pull
from yurt.model.progress import Event, Watch
from yurt.model.run import Run
from yurt.store import Copy, Entry, Store

if TYPE_CHECKING:
    from yurt.backends.base import Files

RESULTS = "results"


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """What came home of a run, and how."""

    id: str
    context: str
    target: str
    """The folder here; empty if the run has written nothing."""
    files: int = 0
    """How many files were sent; those that were here already are not."""
    size: int = 0
    """Their bytes."""
    way: str = ""
    """rsync, or tar where one side has no rsync; empty if nothing had to come."""
    whole: bool = False
    """Whether all results of a run that has ended are here now."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What of runs is to come, and where to."""

    only: Sequence[str] = ()
    everything: bool = False
    folder: Path | None = None
    several: bool = False
    """Whether the folder gets one of its own for each run."""
    names: Mapping[str, str] = {}
    """What that is called, if not as the run."""

    def target(self, run: Run) -> Path:
        if self.folder is None:
            # Apart: a result may have the name of one of the run's own files.
            return Path(RESULTS) / (f"{run.id}.all" if self.everything else run.id)
        return self.folder / self.names.get(run.id, run.id) if self.several else self.folder


Found = tuple[Entry, Contents]


def together(found: Sequence[Found], wanted: Wanted) -> list[list[Found]]:
    """Runs that can come in one transfer: of one project, to one folder."""
    groups: dict[tuple[Path, str], list[Found]] = {}
    for entry, there in found:
        groups.setdefault((wanted.target(entry.run).parent, layout.project_of(entry.run.folder)), []).append(
            (entry, there)
        )
    return list(groups.values())


class Transfer:
    """The results of runs on their way."""

    def __init__(self, store: Store, files: Files, group: Sequence[Found], wanted: Wanted) -> None:
        self._store, self._files, self._group, self._wanted = store, files, group, wanted
        # A folder means what is in it.
        self._only = [f"{glob}**" if glob.endswith("/") else glob for glob in wanted.only]

    def run(self, watch: Watch) -> tuple[list[Fetched], list[YurtError]]:
        """Bring it all. Returns what came of each, and an error for those that have nothing of what was asked for."""
        come = [each for each in self._group if each[1].outputs != NOTHING or self._wanted.everything]
        brought = self._pull([entry.run for entry, _there in come], watch) if come else {}
        done, lacking = [], []
        for entry, there in self._group:
            way, came = brought.get(entry.run.id, ("", None))
            if self._only and (came is None or not came.matched):
                lacking.append(entry.run)
            else:
                done.append(self._fetched(entry, there, way, came))
        return done, [self._no_match(lacking)] if lacking else []

    def _fetched(self, entry: Entry, there: Contents, way: str, came: Brought | None) -> Fetched:
        run = entry.run
        if came is None:
            return Fetched(id=run.id, context=run.context, target="", whole=self._note(entry, there, None))
        target = self._wanted.target(run)
        return Fetched(
            id=run.id,
            context=run.context,
            target=shown(str(target)),
            files=came.files,
            size=came.size,
            way=way,
            whole=self._note(entry, there, target) if not self._only and not came.vanished else False,
        )

    def _pull(self, runs: Sequence[Run], watch: Watch) -> dict[str, tuple[str, Brought]]:
        """One into its folder, several into folders beside each other."""
        targets = {run.id: self._wanted.target(run) for run in runs}
        pulls = [Pull(run.folder, targets[run.id].name) for run in runs]
        several = len(runs) > 1
        label = f"{len(runs)} runs" if several else runs[0].id
        if several:
            watch(Event(f"gathering what {len(runs)} runs wrote on {runs[0].context}"))
        with self._made(list(targets.values()), self._wanted.folder is None):
            target = targets[runs[0].id].parent if several else targets[runs[0].id]
            way, brought = self._files.pull(
                pulls, target, Pick(self._only), _progress(watch, label), everything=self._wanted.everything
            )
        if not several:
            return {runs[0].id: (way, brought)}
        return {run.id: (way, brought.below[targets[run.id].name]) for run in runs}

    @contextlib.contextmanager
    def _made(self, targets: Sequence[Path], ignored: bool) -> Iterator[None]:
        """The folders results go to; those that nothing came into are not left behind."""
        fresh = [each for each in (targets[0].parent,) if not each.exists()]
        made = [*(target for target in targets if _make(target, ignored=ignored)), *fresh]
        try:
            yield
        except BaseException:
            _remove_empty(made)
            raise
        if self._only:
            _remove_empty(made)

    def _note(self, entry: Entry, there: Contents, target: Path | None) -> bool:
        """Remember what came home; whether that is all there will ever be."""
        if not (entry.status.final or there.ended) or UNMEASURED in (there.outputs, there.checkpoints):
            return False
        if target is not None:
            self._store.note_fetched(
                entry.run.id,
                Copy(
                    target=bytes(target.absolute()),
                    at=time.time(),
                    outputs=there.outputs,
                    checkpoints=there.checkpoints if self._wanted.everything else "",
                ),
            )
        return True

    def _no_match(self, runs: Sequence[Run]) -> YurtError:
        globs = ", ".join(f"'{shown(glob)}'" for glob in self._wanted.only)
        where = "run folder" if self._wanted.everything else layout.OUTPUTS
        of = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs ({runs[0].id} …)"
        return NotFoundError(
            f"no file in the {where} of {of} is called {globs}",
            code="not-found",
            hint=f"all of them: yurt fetch {runs[0].id}",
        )


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # something has arrived
            folder.rmdir()


def _progress(watch: Watch, label: str) -> Progress:
    def progress(size: int, percent: int) -> None:
        watch(Event(f"fetching {label}: {size / 1e6:.1f} MB", percent, 100 if percent else 0))

    return progress


def shown(text: str) -> str:
    """A path as text, whatever bytes it is made of."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _make(target: Path, *, ignored: bool) -> bool:
    """Make the folder results go to; False if it is there. `results` keeps itself out of git, and so out of code."""
    try:
        if ignored:
            home = target.parent
            home.mkdir(exist_ok=True)
            if not (home / ".gitignore").exists():
                (home / ".gitignore").write_text("*\n")
        if target.is_dir():
            return False
        target.mkdir(parents=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError(f"{shown(str(target))} is no folder", code="usage", hint="--to DIR") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise here_is_full(target, error.strerror or "") from None
        raise RefusedError(
            f"{shown(str(target))} cannot be made: {error.strerror}", code="site-refused", hint="--to DIR"
        ) from None
    return True
